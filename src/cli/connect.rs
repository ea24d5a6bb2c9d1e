//! Connects to the running instance, also while the workflow file is broken: the runner then works with the last valid version of the
//! file, and people must still be able to look at it and stop it.

use crate::runtime::{Client, ControlError, Reply, Request, RunnerFolder};
use crate::workflow::Loaded;

use super::Failure;
use super::context::Context;

pub enum Connection {
    Live(Reply),
    /// No runner is up.
    Nobody(Box<Loaded>, RunnerFolder),
    /// A runner is up but does not answer.
    Silent(Box<Loaded>, RunnerFolder),
}

pub fn ask(context: &Context, request: &Request) -> Result<Connection, Failure> {
    let (loaded, place) = match context.load(None) {
        Ok(loaded) => {
            let place = context.place(&loaded);
            (Ok(loaded), place)
        }
        Err(failure) => (Err(failure), context.usual_place()),
    };
    match (Client::new(&place.socket).ask(request), loaded) {
        (Ok(reply), _) => Ok(Connection::Live(reply)),
        (Err(_), Err(failure)) => Err(failure),
        (Err(ControlError::NobodyThere { .. }), Ok(loaded)) => Ok(Connection::Nobody(Box::new(loaded), place)),
        (Err(ControlError::NoAnswer { .. }), Ok(loaded)) => Ok(Connection::Silent(Box::new(loaded), place)),
        (Err(error), Ok(_)) => Err(error.into()),
    }
}
