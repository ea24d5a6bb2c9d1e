//! `tests/agents/model_server.py` as a child that ends with its owner.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub struct ModelServer {
    child: Child,
    pub port: u16,
    log: PathBuf,
}

impl ModelServer {
    pub fn start(log: &Path) -> ModelServer {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/model_server.py");
        let mut child =
            Command::new("python3").arg(script).arg(log).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        ModelServer { child, port: line.trim().parse().unwrap(), log: log.to_owned() }
    }

    /// Every request body so far.
    pub fn heard(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
