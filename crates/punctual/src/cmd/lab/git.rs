//! The commits of a git repository, and a temporary working tree of it.

use std::{
    fs,
    io::ErrorKind,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};

/// A temporary working tree; deleted on drop. It has its own state of `git bisect`.
pub struct Worktree {
    path: PathBuf,
}

impl Worktree {
    /// Makes a working tree of this commit. `path` must not exist.
    pub fn new(path: PathBuf, commit: &str) -> anyhow::Result<Self> {
        let tree = Self { path };
        git(Path::new("."), &["worktree", "add", "--detach", &tree.path.to_string_lossy(), commit])?;
        Ok(tree)
    }

    /// Its root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs git in it.
    pub fn git(&self, words: &[&str]) -> anyhow::Result<String> {
        git(&self.path, words)
    }

    /// Restores the files of git that a build changed. Without this, the next checkout fails.
    pub fn reset(&self) -> anyhow::Result<()> {
        self.git(&["reset", "--hard", "--quiet"]).map(drop)
    }
}

impl Worktree {
    /// Deletes a file unless it is one of git: a build that fails without saying so must not leave that of another commit.
    pub fn remove_built(&self, file: &Path) -> anyhow::Result<()> {
        if !self.git(&["ls-files", "--", &file.to_string_lossy()])?.is_empty() {
            return Ok(());
        }
        match fs::remove_file(self.path.join(file)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot delete {}", file.display()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let path = self.path.to_string_lossy();
        // With half of its files, git does not know it.
        if git(Path::new("."), &["worktree", "remove", "--force", &path]).is_err() {
            let _ = fs::remove_dir_all(&self.path);
            let _ = git(Path::new("."), &["worktree", "prune"]);
        }
        if self.path.exists() {
            say!("note: {path} could not be deleted: delete it, then run `git worktree prune`");
        }
    }
}

/// The commit with this name.
pub fn commit(name: &str) -> anyhow::Result<String> {
    let commit = format!("{name}^{{commit}}");
    git(Path::new("."), &["rev-parse", "--verify", "--end-of-options", &commit])
        .with_context(|| format!("\"{name}\" is not a commit of the repository in this folder"))
}

/// True if one commit is an ancestor of the other.
pub fn is_ancestor(older: &str, newer: &str) -> anyhow::Result<bool> {
    Ok(git(Path::new("."), &["rev-list", "--max-count=1", older, "--not", newer])?.is_empty())
}

/// The output of git without its last line end. Ctrl-C does not reach git, so that it ends its work.
fn git(folder: &Path, words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(words).env("LC_ALL", "C").stdin(Stdio::null()).process_group(0);
    // They would let git use another working tree than that of the folder.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("git is not installed: sudo apt-get install -y --no-install-recommends git")
        }
        output => output.context("cannot start git")?,
    };
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let first = errors.lines().find(|line| line.starts_with("fatal: ")).or(errors.lines().next());
        let first = first.unwrap_or_default().trim_start_matches("fatal: ").trim_start_matches("error: ");
        bail!("git {} failed: {first}", words[0]);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_built_files_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]).unwrap();
        for name in ["tracked", "built"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        git(folder.path(), &["add", "tracked"]).unwrap();
        // Not dropped, because it is no working tree of another one.
        let tree = std::mem::ManuallyDrop::new(Worktree { path: folder.path().to_owned() });
        for name in ["tracked", "built", "absent"] {
            tree.remove_built(Path::new(name)).unwrap();
        }
        assert!(folder.path().join("tracked").exists() && !folder.path().join("built").exists());
    }
}
