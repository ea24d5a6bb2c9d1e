//! What `doctor` reports about scripts that the agent and the gates are started with. They must be in the base commit: a worktree has only
//! what is committed there, not other files of the user's work tree.

use crate::config::workspace::WorkspaceMode;
use crate::runtime::assembly;
use crate::workflow::Loaded;

use super::Failure;
use super::block_on;
use super::doctor::Report;

/// A program whose first argument that is not an option is a script.
struct Interpreter {
    /// Its name without a version.
    name: &'static str,
    /// The options of one letter that take no value. Any other one may take the next word, or makes it something else than a script.
    flags: &'static str,
    /// The long options that take no value.
    long_flags: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 8] = [
    shell("sh"),
    shell("bash"),
    shell("dash"),
    shell("zsh"),
    Interpreter { name: "python", flags: "bBdEiIOPqRsSuvx", long_flags: &[] },
    Interpreter { name: "node", flags: "", long_flags: &["no-warnings", "enable-source-maps", "trace-warnings"] },
    Interpreter { name: "ruby", flags: "dvw", long_flags: &[] },
    Interpreter { name: "perl", flags: "TtUuvWwX", long_flags: &[] },
];

const fn shell(name: &'static str) -> Interpreter {
    Interpreter { name, flags: "abefhiklmnprtuvxBCEHPT", long_flags: &["login", "noprofile", "norc", "posix"] }
}

/// Programs that start the rest of their line, after variables.
const WRAPPERS: [&str; 4] = ["env", "exec", "nohup", "time"];

pub fn in_base(loaded: &Loaded, report: &mut Report) {
    let settings = &loaded.settings;
    if settings.workspace.mode == WorkspaceMode::Directory {
        return;
    }
    let Ok(workspaces) = assembly::workspaces(settings) else { return };
    let agent = (format!("{}.command", settings.worker.runtime.name()), settings.command(settings.worker.runtime));
    let gates = settings.gates.task.iter().map(|gate| (format!("gate `{}`", gate.title()), gate.run.as_str()));
    // A hook may create a script that is not in git.
    let made_later = settings.hooks.after_create.is_some() || settings.hooks.before_run.is_some();
    for (whose, command) in std::iter::once(agent).chain(gates) {
        let Some(script) = script_of(command) else { continue };
        let base = &settings.workspace.base;
        let there = block_on(async { workspaces.base_has(base, script).await.map_err(Failure::plain) });
        // A base that cannot be read is reported by another check.
        if there.unwrap_or(true) {
            continue;
        }
        let what = format!("`{script}` of {whose} is not in the base commit ({base}), and every run starts from that");
        match made_later {
            true => report.warn("scripts", what, "commit it, unless one of your hooks makes it"),
            false => report.problem("scripts", what, format!("commit it to {base}, or name it by an absolute path")),
        }
    }
}

/// Returns the script of a command line if it is a relative path: its program, or the script that it passes to an interpreter. `None` also
/// wherever this is not certain: doctor must not report what is in order.
fn script_of(command: &str) -> Option<&str> {
    let mut words = command.lines().next()?.split_whitespace();
    let mut program = words.find(|word| !is_assignment(word))?;
    while WRAPPERS.contains(&program) {
        program = words.find(|word| !is_assignment(word))?;
    }
    let name = program.rsplit('/').next()?.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let interpreter = INTERPRETERS.iter().find(|known| known.name == name);
    let interpreter = interpreter.filter(|_| !program.contains('/') || program.starts_with('/'));
    let script = match interpreter {
        Some(interpreter) => interpreter.script(words)?,
        None => program,
    };
    // Where a word of the shell's language comes before the script, or is in it, these words are not the ones that the shell sees.
    let before = command.find(script).and_then(|at| command.get(..at + script.len()))?;
    let is_plain = !before.contains(['"', '\'', '\\', '$', '`', '*', '?', ';', '&', '|', '<', '>', '(', ')', '{', '#']);
    let is_inside = !script.starts_with(['/', '~', '-']) && !script.split('/').any(|part| part == "..");
    // A program without `/` is on the path.
    let is_path = script.contains('/') || (interpreter.is_some() && script.contains('.'));
    (is_plain && is_inside && is_path).then_some(script)
}

/// Whether the word sets a variable for the command: `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

impl Interpreter {
    /// Returns the first word that is not an option. `None` after an option that takes a value, or might: then that word is not a script.
    fn script<'a>(&self, mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        loop {
            let word = words.next()?;
            let letters = match word.strip_prefix('-') {
                None => return self.names_a_file(word).then_some(word),
                Some("-") => return words.next().filter(|word| self.names_a_file(word)),
                Some(letters) => letters,
            };
            let is_flag = match letters.strip_prefix('-') {
                Some(long) => long.contains('=') || self.long_flags.contains(&long),
                None => !letters.is_empty() && letters.chars().all(|letter| self.flags.contains(letter)),
            };
            if !is_flag {
                return None;
            }
        }
    }

    /// Whether the word is the name of a file as it is. Node finds `app.js` by `app`, too.
    fn names_a_file(&self, word: &str) -> bool {
        self.name != "node" || [".js", ".mjs", ".cjs", ".ts", ".mts"].iter().any(|ending| word.ends_with(ending))
    }
}

#[cfg(test)]
mod tests {
    use super::script_of;

    #[test]
    fn the_script_of_a_command_line_is_found() {
        for (command, script) in [
            ("sh ./agent.sh", "./agent.sh"),
            ("bash -eu agent.sh --fast", "agent.sh"),
            ("bash --login -e agent.sh", "agent.sh"),
            ("/bin/bash agent.sh", "agent.sh"),
            ("./check.sh", "./check.sh"),
            ("./check.sh && echo \"done\"", "./check.sh"),
            ("A=1 tools/run x", "tools/run"),
            ("env A=1 tools/run -c x", "tools/run"),
            ("exec ./agent.sh", "./agent.sh"),
            ("python3.12 -u agent.py -m x", "agent.py"),
            ("node --max-old-space-size=4096 dist/agent.js", "dist/agent.js"),
            ("perl -w -- agent.pl", "agent.pl"),
        ] {
            assert_eq!(script_of(command), Some(script), "{command}");
        }
    }

    #[test]
    fn what_is_not_certainly_a_script_is_none() {
        for command in [
            "python3 -m pytest",
            "python3 -m pkg.module",
            "python3 -mpkg.module",
            "python3 -W error::x.Y agent.py",
            "sh -c 'make test'",
            "bash -lc ./run.sh",
            "bash -o pipefail ./run.sh",
            "bash -s a.b",
            "node --flag x.y",
            "node --require ./setup.js app.js",
            "node -e 1.5",
            "node dist/agent",
            "ruby -rmy.lib x.rb",
            "env -u A/B make",
            "env A=b make",
            "A='b c/d' make",
            "A=\"b c/d\" make",
            "uv run agent.py",
            "uv run -m pkg.module",
            "npx @scope/tool",
            "timeout 60 ./x.sh",
            "make test",
            "/opt/agent",
            "claude",
            "$HOME/agent",
            "../agent.sh",
            "bin/../../agent.sh",
            "\"./my agent.sh\"",
            "./agent.sh; ls",
            "cd sub && ./agent.sh",
            "",
        ] {
            assert_eq!(script_of(command), None, "{command}");
        }
    }
}
