//! QR codes in a terminal.

use qrcode::{EcLevel, QrCode, types::QrError};

/// Light modules around the code (ISO/IEC 18004 demands 4).
const QUIET: isize = 4;
/// Black on white.
const INK: &str = "\x1b[0;30;47m";
const END: &str = "\x1b[0m";

/// The code of a text, two modules in each character. With colour it is black on white. Without, its light modules have
/// the colour of the text, which is right on a dark terminal; most phones read it on a light one, too.
pub fn code(text: &str, color: bool) -> Result<String, QrError> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)?;
    let width = isize::try_from(code.width()).unwrap_or(0);
    let is_dark = |x: isize, y: isize| {
        let is_inside = (0..width).contains(&x) && (0..width).contains(&y);
        is_inside && code[(x.unsigned_abs(), y.unsigned_abs())] == qrcode::Color::Dark
    };
    let (ink, end) = if color { (INK, END) } else { ("", "") };
    let line = |y: isize| {
        let modules: String = (-QUIET..width + QUIET)
            .map(|x| match (is_dark(x, y) == color, is_dark(x, y + 1) == color) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            })
            .collect();
        format!("{ink}{modules}{end}\n")
    };
    Ok((-QUIET..width + QUIET).step_by(2).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_contain_all_modules() {
        let text = "http://192.168.1.5:8077/?token=0123456789abcdef0123456789abcdef";
        let original = QrCode::with_error_correction_level(text, EcLevel::L).unwrap();
        let width = original.width() + 8;
        for color in [true, false] {
            let drawn = code(text, color).unwrap();
            let rows: Vec<Vec<char>> = drawn
                .lines()
                .map(|line| line.trim_start_matches(INK).trim_end_matches(END).chars().collect())
                .collect();
            assert_eq!((rows.len(), rows[0].len()), (width.div_ceil(2), width));
            for y in 0..original.width() {
                for x in 0..original.width() {
                    let (row, half) = ((y + 4) / 2, (y + 4) % 2);
                    let is_filled = "█▀▄".contains(rows[row][x + 4]) && rows[row][x + 4] != ['▄', '▀'][half];
                    assert_eq!(is_filled == color, original[(x, y)] == qrcode::Color::Dark, "{x} {y} {color}");
                }
            }
        }
    }
}
