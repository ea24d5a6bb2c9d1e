//! Runs `tk` as a process: with the real streams and variables, prints the output, and returns the exit code or replaces itself with
//! another program.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::noted;
use super::session::{Successor, TkCall};

/// The exit code that a shell reports for a program that was ended by a closed pipe.
const CLOSED_PIPE: u8 = 141;

/// Runs one call with the real streams and environment. `arguments[0]` is the name by which the program was called.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let called_as = arguments.next().unwrap_or_else(|| OsString::from("tk"));
    let arguments: Vec<OsString> = arguments.collect();
    let program = Path::new(&called_as).file_name().unwrap_or(OsStr::new("tk")).to_string_lossy().into_owned();
    let session = TkCall {
        program,
        cwd: working_directory(),
        variables: std::env::vars_os().collect(),
        stdin_is_terminal: io::stdin().is_terminal(),
        stdout_is_terminal: io::stdout().is_terminal(),
        read_stdin: &|| {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            Ok(bytes)
        },
    };
    let reply = match super::call(&session, &arguments, &own_path(&session, &called_as)) {
        Ok(reply) => reply,
        Err(failure) => {
            eprintln!("{}", failure.report());
            return ExitCode::from(failure.code());
        }
    };
    for warning in &reply.warnings {
        eprintln!("{warning}");
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(&reply.out).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return ExitCode::from(CLOSED_PIPE),
        Err(error) => {
            eprintln!("Error: could not write to stdout: {error}");
            return ExitCode::FAILURE;
        }
    }
    // This goes to stderr, because scripts written for the public tool read stdout.
    if let Some(told) = reply.noted.and_then(|(id, text)| noted::what_comes_of_it(&id, &text)) {
        eprintln!("{told}");
    }
    match reply.then {
        Some(exec) => become_program(&session, exec),
        None => ExitCode::from(reply.code),
    }
}

/// Returns the current directory by the name that the shell has for it (`PWD`), if that is the same directory. The prefix of new ids is
/// made from this name.
fn working_directory() -> PathBuf {
    let real = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let named = std::env::var_os("PWD").map(PathBuf::from).filter(|path| path.is_absolute());
    match named {
        Some(named) if named.canonicalize().ok() == real.canonicalize().ok() => named,
        _ => real,
    }
}

/// Returns the path by which a plugin can call this program: that of the name under which it was called, if it leads here. Another program
/// may have that name, and after `dirigent tk` there may be none.
fn own_path(session: &TkCall<'_>, called_as: &OsStr) -> PathBuf {
    let own = std::env::current_exe().ok();
    let leads_here =
        |path: &PathBuf| own.as_ref().is_none_or(|own| path.canonicalize().ok() == own.canonicalize().ok());
    let called = Path::new(called_as);
    let by_name = if called.components().count() > 1 {
        Some(session.cwd.join(called))
    } else {
        session.find_program(&called_as.to_string_lossy())
    };
    by_name.filter(leads_here).or_else(|| own.clone()).unwrap_or_else(|| called.to_path_buf())
}

fn become_program(session: &TkCall<'_>, exec: Successor) -> ExitCode {
    let shown = exec.program.display().to_string();
    let outcome = (|| -> Result<std::convert::Infallible, io::Error> {
        if let Some(file) = &exec.stdin {
            nix::unistd::dup2_stdin(file)?;
        }
        let mut variables = session.variables.clone();
        for (name, value) in exec.variables {
            variables.insert(OsString::from(name), value);
        }
        let program = c_string(exec.program.into_os_string())?;
        let mut arguments = vec![program.clone()];
        for argument in exec.arguments {
            arguments.push(c_string(argument)?);
        }
        let environment = variables
            .into_iter()
            .map(|(name, value)| {
                let mut pair = name;
                pair.push("=");
                pair.push(value);
                c_string(pair)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(nix::unistd::execve(&program, &arguments, &environment)?)
    })();
    match outcome {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("Error: could not start {shown}: {error}");
            ExitCode::from(126)
        }
    }
}

fn c_string(text: OsString) -> io::Result<CString> {
    CString::new(text.into_vec()).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
}
