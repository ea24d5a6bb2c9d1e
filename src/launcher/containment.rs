//! What holds a run's processes together. Detected once, by trying it.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::shield::Shield;

/// How long one try may take before it counts as failed.
const TRY_LIMIT: Duration = Duration::from_secs(10);

/// The script of process 1 of a namespace. It runs the command in the foreground and so reaps all orphans; when it exits, everything else
/// in the namespace is killed. The shell's note about a child that a signal killed goes to the status file, which tells `exit 137` from a
/// kill.
const FIRST_PROCESS: &str = r#"exec 4>&2 2>"$1"; shift; (exec "$@" 2>&4 4>&-); exit $?"#;

/// The ways to hold processes together, from best to last resort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace made by bubblewrap.
    Bubblewrap,
    /// A PID namespace made by util-linux, as root.
    PidNamespace,
    /// A PID namespace inside a user namespace, made by util-linux.
    UserPidNamespace,
    /// A session of its own and a search for strays. If the runner is killed with `kill -9`, processes may be left until its next start
    /// sweeps them.
    ProcessGroup,
}

impl Containment {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Bubblewrap => "PID namespace (bubblewrap)",
            Self::PidNamespace => "PID namespace (unshare)",
            Self::UserPidNamespace => "PID namespace in a user namespace (unshare)",
            Self::ProcessGroup => "process group; leftovers of a killed runner are swept at the next start",
        }
    }

    pub fn is_namespace(self) -> bool {
        self != Self::ProcessGroup
    }
}

/// The options of `setpriv` that drop the capabilities which were needed for the mounts.
const WITHOUT_CAPABILITIES: [&str; 3] = ["--inh-caps=-all", "--ambient-caps=-all", "--"];

/// A containment with the programs that make it.
#[derive(Debug, Clone)]
pub struct Wrapper {
    pub containment: Containment,
    prefix: Vec<OsString>,
    /// What its processes may not write. `None` where the shield does not work.
    shield: Option<Shield>,
}

impl Wrapper {
    /// Returns the best containment that works here, with the shield if that works too.
    pub fn detect(shield: Option<&Shield>) -> Self {
        [Containment::Bubblewrap, Containment::PidNamespace, Containment::UserPidNamespace]
            .into_iter()
            .find_map(|containment| Self::find(containment, shield))
            .unwrap_or_else(|| Self {
                containment: Containment::ProcessGroup,
                prefix: tied_to_us().unwrap_or_default(),
                shield: None,
            })
    }

    /// Returns this containment if it works here; without the shield if it works only without.
    pub fn find(containment: Containment, shield: Option<&Shield>) -> Option<Self> {
        let tried = |shield: Option<&Shield>| {
            Self::prepare(containment, shield).filter(|wrapper| !containment.is_namespace() || wrapper.works())
        };
        shield.and_then(|shield| tried(Some(shield))).or_else(|| tried(None))
    }

    pub fn is_shielded(&self) -> bool {
        self.shield.is_some()
    }

    /// Returns this containment if its programs are installed.
    fn prepare(containment: Containment, shield: Option<&Shield>) -> Option<Self> {
        let prefix = match containment {
            Containment::Bubblewrap => {
                let mut prefix = tool("bwrap")?;
                let flags = "--unshare-pid --die-with-parent --new-session --as-pid-1 --dev-bind / / --proc /proc";
                prefix.extend(flags.split(' ').map(OsString::from));
                prefix
            }
            Containment::PidNamespace => {
                let mut prefix = tied_to_us()?;
                prefix.extend(tool("unshare")?);
                prefix.extend("--pid --fork --kill-child=KILL --mount-proc --".split(' ').map(OsString::from));
                prefix
            }
            Containment::UserPidNamespace => {
                let mut prefix = tied_to_us()?;
                prefix.extend(tool("unshare")?);
                let flags = "--user --map-current-user --pid --fork --kill-child=KILL --mount-proc";
                prefix.extend(flags.split(' ').map(OsString::from));
                prefix.extend(shield.map(|_| OsString::from("--keep-caps")));
                prefix.push("--".into());
                prefix
            }
            Containment::ProcessGroup => tied_to_us().unwrap_or_default(),
        };
        Some(Self { containment, prefix, shield: shield.filter(|_| containment.is_namespace()).cloned() })
    }

    /// Returns the words before the program of a command line that may write `writable` behind the shield.
    pub fn before(&self, status_file: &Path, writable: &[PathBuf]) -> Vec<OsString> {
        let mut line = self.prefix.clone();
        let writable: Vec<PathBuf> = writable.iter().cloned().chain([status_file.into()]).collect();
        match (self.containment, &self.shield) {
            (Containment::Bubblewrap, shield) => {
                line.extend(shield.iter().flat_map(|shield| shield.for_bubblewrap(&writable)));
                line.push("--".into());
            }
            (Containment::UserPidNamespace, Some(shield)) => {
                line.extend(shield.before(&writable));
                line.extend(tool("setpriv").unwrap_or_default());
                line.extend(WITHOUT_CAPABILITIES.map(OsString::from));
            }
            (Containment::PidNamespace, Some(shield)) => line.extend(shield.before(&writable)),
            _ => {}
        }
        if self.containment.is_namespace() {
            line.extend(["/bin/sh", "-c", FIRST_PROCESS, "dirigent-run"].map(OsString::from));
            line.push(status_file.into());
        }
        line
    }

    /// Returns the full command line for `program` (an absolute path) and its arguments.
    pub fn wrap(
        &self,
        status_file: &Path,
        writable: &[PathBuf],
        program: &Path,
        arguments: &[String],
    ) -> Vec<OsString> {
        let mut line = self.before(status_file, writable);
        line.push(program.into());
        line.extend(arguments.iter().map(OsString::from));
        line
    }

    /// Whether the command has to be given a process group because it does not start a session itself.
    pub fn needs_process_group(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Whether the containment works: a shell in it has to see itself as process 2, and its exit code has to come out.
    pub fn works(&self) -> bool {
        let script = ["-c".to_owned(), "echo $$; exit 7".to_owned()];
        let line = self.wrap(Path::new("/dev/null"), &[], Path::new("/bin/sh"), &script);
        let Some((program, arguments)) = line.split_first() else { return false };
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { return false };
        let deadline = Instant::now() + TRY_LIMIT;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                Ok(None) | Err(_) => {
                    child.kill().ok();
                    child.wait().ok();
                    return false;
                }
            }
        };
        let mut output = String::new();
        if let Some(mut stdout) = child.stdout.take() {
            stdout.read_to_string(&mut output).ok();
        }
        status.code() == Some(7) && output.trim() == "2"
    }
}

/// Returns the words that start a session of its own, which the kernel kills when the thread that started it exits. `None` if the tools are
/// missing.
fn tied_to_us() -> Option<Vec<OsString>> {
    let mut prefix = tool("setsid")?;
    prefix.extend(tool("setpriv")?);
    prefix.extend(["--pdeathsig", "KILL"].map(OsString::from));
    Some(prefix)
}

fn tool(name: &str) -> Option<Vec<OsString>> {
    let path = std::env::var("PATH").unwrap_or_default();
    find_program(name, &path).map(|found| vec![found.into()])
}

/// Returns the file that a shell would run for `name`.
pub fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return is_executable(Path::new(name)).then(|| PathBuf::from(name));
    }
    path.split(':')
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| Path::new(dir).join(name))
        .find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
