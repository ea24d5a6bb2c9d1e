//! Keeps a run's processes from writing to the runner's own state, where they live in a mount namespace of their own: the folders of all
//! boards are mounted read-only there, except for what a run has to write. The mounts are made by this program, which is started again
//! inside of the namespace right before the command (`dirigent run-shielded`).

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The subcommand with which the program is started inside of a namespace.
pub const COMMAND: &str = "run-shielded";
const END_OF_PATHS: &str = "--";
/// A file in each board's folder that runs must not even read.
pub const COVERED: &str = "api-token";
/// The empty file that runs see in its place.
const NOTHING: &str = "/dev/null";

/// What is protected from runs, and the program that does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shield {
    /// The path of this program.
    pub program: PathBuf,
    /// The folder that is read-only for runs, by its real path. The folder around it cannot be moved away either.
    pub folder: PathBuf,
}

impl Shield {
    /// Returns the words before a command inside of the namespace that make only `writable` writable in the folder. Empty if the program's
    /// file was removed: a run without a shield is better than none.
    pub fn before(&self, writable: &[PathBuf]) -> Vec<OsString> {
        if !self.program.exists() {
            tracing::warn!(program = %self.program.display(), "the program is gone; a run starts without a shield");
            return Vec::new();
        }
        let mut line: Vec<OsString> = vec![self.program.clone().into(), COMMAND.into(), self.folder.clone().into()];
        line.extend(self.within(writable).map(OsString::from));
        line.push(END_OF_PATHS.into());
        line
    }

    /// Returns the same as options of bubblewrap, which makes the mounts itself.
    pub fn for_bubblewrap(&self, writable: &[PathBuf]) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let mut add = |how: &str, path: &Path| line.extend([how.into(), path.into(), path.into()]);
        if let Some(above) = self.folder.parent() {
            add("--bind", above);
        }
        add("--ro-bind", &self.folder);
        for path in self.within(writable) {
            add("--bind", &path);
        }
        for path in covered(&self.folder) {
            line.extend(["--ro-bind".into(), NOTHING.into(), path.into()]);
        }
        line
    }

    fn within(&self, writable: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
        writable.iter().filter_map(|path| path.canonicalize().ok()).filter(|path| path.starts_with(&self.folder))
    }
}

fn covered(folder: &Path) -> Vec<PathBuf> {
    let boards = std::fs::read_dir(folder).into_iter().flatten().flatten();
    boards.map(|board| board.path().join(COVERED)).filter(|path| path.is_file()).collect()
}

/// Makes the mounts and replaces this process by the command. `arguments` are the words that [`Shield::before`] wrote after its subcommand,
/// and the command. Returns only with an error.
pub fn enter(arguments: &[OsString]) -> io::Result<Infallible> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidInput, "only dirigent itself calls this");
    let end = arguments.iter().position(|word| word == END_OF_PATHS).ok_or_else(malformed)?;
    let (paths, command) = arguments.split_at(end);
    let (folder, writable) = paths.split_first().ok_or_else(malformed)?;
    shield(Path::new(folder), writable)?;
    let command: Vec<CString> =
        command.get(1..).unwrap_or_default().iter().map(|word| c_string(word)).collect::<Result<_, _>>()?;
    let program = command.first().ok_or_else(malformed)?;
    Ok(nix::unistd::execv(program, &command)?)
}

fn c_string(word: &OsStr) -> io::Result<CString> {
    CString::new(word.as_bytes()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

#[cfg(target_os = "linux")]
fn shield(folder: &Path, writable: &[OsString]) -> io::Result<()> {
    use nix::mount::{MsFlags, mount};
    let nothing: Option<&str> = None;
    let onto_itself = |path: &Path, more: MsFlags| mount(Some(path), path, nothing, MsFlags::MS_BIND | more, nothing);
    for path in writable {
        onto_itself(Path::new(path), MsFlags::empty())?;
    }
    for path in covered(folder) {
        mount(Some(NOTHING), path.as_path(), nothing, MsFlags::MS_BIND, nothing)?;
    }
    // Includes the mounts just made, which stay writable when the folder becomes read-only.
    onto_itself(folder, MsFlags::MS_REC)?;
    let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | flags_of(folder)?;
    mount(nothing, folder, nothing, read_only, nothing)?;
    // A folder that is a mount point cannot be renamed and replaced by another.
    if let Some(above) = folder.parent() {
        onto_itself(above, MsFlags::MS_REC)?;
    }
    Ok(())
}

/// Returns the restrictions of the mount, which must be kept when it is remounted in a user namespace.
#[cfg(target_os = "linux")]
fn flags_of(path: &Path) -> io::Result<nix::mount::MsFlags> {
    use nix::mount::MsFlags;
    use nix::sys::statvfs::{FsFlags, statvfs};
    let set = statvfs(path)?.flags();
    let kept = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    Ok(kept.into_iter().filter(|(flag, _)| set.contains(*flag)).fold(MsFlags::empty(), |all, (_, one)| all | one))
}

#[cfg(not(target_os = "linux"))]
fn shield(_folder: &Path, _writable: &[OsString]) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "there are no mount namespaces here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_and_inside_is_made_writable() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let folder = home.join("repos");
        let agents = folder.join("a/agents");
        std::fs::create_dir_all(&agents).unwrap();
        std::os::unix::fs::symlink(&folder, home.join("link")).unwrap();
        let shield = Shield { program: "/bin/sh".into(), folder: folder.clone() };
        let writable = [home.join("link/a/agents"), folder.join("not/there"), "/dev/null".into()];
        let expected = [Path::new("/bin/sh"), Path::new(COMMAND), &folder, &agents, Path::new("--")];
        assert_eq!(shield.before(&writable), expected.map(OsString::from));
        let bubblewrap = shield.for_bubblewrap(&writable).join(OsStr::new(" "));
        let (home, repos) = (home.display(), folder.display());
        let agents = agents.display();
        let expected = format!("--bind {home} {home} --ro-bind {repos} {repos} --bind {agents} {agents}");
        assert_eq!(bubblewrap, OsString::from(&expected));
        std::fs::write(folder.join("a").join(COVERED), "token").unwrap();
        let bubblewrap = shield.for_bubblewrap(&writable).join(OsStr::new(" "));
        assert_eq!(bubblewrap, OsString::from(format!("{expected} --ro-bind /dev/null {repos}/a/{COVERED}")));
    }
}
