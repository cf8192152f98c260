//! The live view in a pseudo terminal, which `script` of util-linux creates.

use std::{
    io::{Read, Write},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use crate::harness::{PUNCTUAL, skip, wait_until};

/// The title of the view.
const VIEW: &str = "punctual: at rest";
/// The beginning of the result.
const RESULT: &str = "Worst ";
/// The key Ctrl-C.
const INTERRUPT: &[u8] = b"\x03";
/// Columns and rows.
const SIZES: [(usize, usize); 2] = [(80, 24), (40, 10)];

/// A measurement in a pseudo terminal.
struct Session {
    script: Child,
    output: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Session {
    /// Starts `measure timer` in a terminal; `None` if `script` is not installed.
    fn start((columns, rows): (usize, usize), term: &str, duration: &str) -> Option<Self> {
        let measure = "measure timer --no-record --cpus 0 --policy other --blame=off --duration";
        let run = format!("trap : INT; stty cols {columns} rows {rows}; \"$PUNCTUAL\" {measure} {duration}; status=$?");
        let command = format!("{run}; stty -a | grep -q -- -echo[^a-z] && echo NO ECHO; exit $status");
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]);
        script.envs([("PUNCTUAL", PUNCTUAL), ("SHELL", "/bin/sh"), ("TERM", term), ("LC_ALL", "C.UTF-8")]);
        script.env("NO_COLOR", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut script) = script.spawn() else {
            skip("the live view in a terminal: script is not installed: sudo apt-get install bsdutils");
            return None;
        };
        let mut from = script.stdout.take().expect("a pipe");
        let output = Arc::new(Mutex::new(Vec::new()));
        let all = output.clone();
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut bytes) {
                all.lock().unwrap().extend_from_slice(&bytes[..length]);
            }
        });
        Some(Self { script, output, reader })
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    fn press(&mut self, key: &[u8]) {
        self.script.stdin.as_mut().expect("a pipe").write_all(key).expect("a terminal that is open");
    }

    /// Waits for the end, and returns the exit status and the output.
    fn end(mut self) -> (Option<i32>, String) {
        // Not `wait`, which would close the terminal's input.
        wait_until("the measurement ends", || self.script.try_wait().unwrap().is_some());
        let status = self.script.wait().unwrap().code();
        self.reader.join().unwrap();
        let output = String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned();
        assert!(!output.contains("NO ECHO"), "the terminal is not restored: {output}");
        (status, output)
    }
}

/// A terminal that knows the sequences of the view. Others, such as one that hides the cursor, are errors.
struct Terminal {
    columns: usize,
    rows: usize,
    /// All lines, including those above the screen.
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Number of lines that were too wide.
    wrapped: usize,
}

impl Terminal {
    fn new((columns, rows): (usize, usize)) -> Self {
        Self { columns, rows, lines: vec![Vec::new()], row: 0, column: 0, wrapped: 0 }
    }

    fn print(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.line_feed(),
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['), "an unknown sequence");
                    let parameter: String = rest.clone().take_while(char::is_ascii_digit).collect();
                    match rest.nth(parameter.len()) {
                        Some('A') => self.up(parameter.parse().expect("a number of lines")),
                        Some('K') if parameter.is_empty() => self.lines[self.row].truncate(self.column),
                        Some('J') if parameter.is_empty() => {
                            self.lines[self.row].truncate(self.column);
                            self.lines.truncate(self.row + 1);
                        }
                        other => panic!("an unknown sequence: {parameter}{other:?}"),
                    }
                }
                c => self.put(c),
            }
        }
    }

    fn line_feed(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Vec::new());
        }
    }

    fn up(&mut self, count: usize) {
        assert!(count < self.rows, "{count} lines up on a screen of {}", self.rows);
        self.row -= count;
    }

    fn put(&mut self, c: char) {
        if self.column == self.columns {
            self.wrapped += 1;
            self.column = 0;
            self.line_feed();
        }
        let line = &mut self.lines[self.row];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = c;
        self.column += 1;
    }

    fn text(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| line.iter().collect()).collect();
        lines.join("\n")
    }
}

/// Checks that the view fitted the terminal and was replaced by one result.
fn check_view(size: (usize, usize), output: &str) {
    assert!(output.contains(VIEW), "no view: {output}");
    let (view, result) = output.split_at(output.find(RESULT).unwrap_or_else(|| panic!("no result: {output}")));
    let mut terminal = Terminal::new(size);
    terminal.print(view);
    assert_eq!(terminal.wrapped, 0, "{size:?}: {view}");
    assert_eq!(terminal.text(), "", "{size:?}: parts of the view are left");
    terminal.print(result);
    let text = terminal.text();
    assert!(text.starts_with(RESULT) && text.matches(RESULT).count() == 1, "{size:?}: {text}");
    assert!(!text.contains(VIEW) && terminal.column == 0, "{size:?}: {text}");
}

#[test]
fn the_view_fits_the_terminal_and_is_replaced_by_the_result() {
    for size in SIZES {
        let Some(session) = Session::start(size, "xterm", "2s") else { return };
        let (status, output) = session.end();
        assert_eq!(status, Some(0), "{output}");
        check_view(size, &output);
    }
}

#[test]
fn ctrl_c_ends_the_view_with_the_result() {
    for size in SIZES {
        let Some(mut session) = Session::start(size, "xterm", "1h") else { return };
        wait_until("the view is drawn", || session.output().contains(VIEW));
        session.press(INTERRUPT);
        let (status, output) = session.end();
        assert_eq!(status, Some(0), "{output}");
        check_view(size, &output);
    }
}

#[test]
fn a_terminal_without_cursor_movement_gets_plain_lines() {
    for size in SIZES {
        let Some(mut session) = Session::start(size, "dumb", "1h") else { return };
        wait_until("a line is printed", || session.output().contains("at rest: "));
        session.press(INTERRUPT);
        let (status, output) = session.end();
        assert_eq!(status, Some(0), "{output}");
        assert!(!output.contains('\x1b') && !output.contains(VIEW), "{output}");
        assert_eq!(output.matches(RESULT).count(), 1, "{output}");
    }
}

#[test]
fn the_keys_explain_pause_and_finish() {
    let Some(mut session) = Session::start(SIZES[0], "xterm", "1h") else { return };
    wait_until("the keys are shown", || session.output().contains("q finish now"));
    session.press(b"?");
    wait_until("the view is explained", || session.output().contains("the largest of this phase"));
    session.press(b"p");
    wait_until("the view is paused", || session.output().contains("p continue (paused)"));
    let paused = session.output().len();
    thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(session.output().len(), paused, "the paused view is still drawn");
    session.press(b"p");
    wait_until("the view goes on", || session.output().len() > paused);
    session.press(b"xq");
    let (status, output) = session.end();
    assert_eq!(status, Some(0), "{output}");
    assert!(output.contains("ou ended the run") && !output.contains("SIGINT"), "{output}");
    check_view(SIZES[0], &output);
}
