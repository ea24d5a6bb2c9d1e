//! `token`: prints the token that API requests need to change something.

use std::io::ErrorKind;

use secrecy::ExposeSecret;

use crate::http;

use super::Failure;
use super::context::Context;
use super::output;

pub fn token(context: &Context) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let server = &loaded.settings.server;
    if let Some(token) = server.secrets().next() {
        return output::print(token.expose_secret());
    }
    let place = context.place(&loaded);
    match http::read_generated(&place.state_dir) {
        Ok(token) => output::print(token.expose_secret()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::NotFound(
            "there is no token yet: the first runner with a `server.port` (or `--port`) makes one".into(),
        )),
        Err(error) => {
            Err(Failure::plain(format!("{} cannot be read: {error}", http::token_file(&place.state_dir).display())))
        }
    }
}
