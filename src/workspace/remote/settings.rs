//! The git configuration for network calls: the runner's own, plus a few settings of the user.

/// The user's HTTP settings that are used. None of them names a program or another address, or weakens TLS.
const TAKEN_OVER: [&str; 7] =
    ["proxy", "sslcainfo", "sslcapath", "sslbackend", "schannelusesslcainfo", "version", "postbuffer"];

/// Reads the HTTP settings from the user's own configuration, once at the start. The repository's is not read: a worker can write it.
pub fn of_user() -> Vec<(String, String)> {
    let Ok(config) = git2::Config::open_default() else { return Vec::new() };
    let Ok(mut entries) = config.entries(Some("^http\\.")) else { return Vec::new() };
    let mut found = Vec::new();
    while let Some(Ok(entry)) = entries.next() {
        let (Ok(name), true) = (entry.name(), entry.has_value()) else { continue };
        let key = name.rsplit('.').next().unwrap_or_default();
        if let (true, Ok(value)) = (TAKEN_OVER.contains(&key), entry.value()) {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// Returns the text of the private configuration.
pub fn private(of_user: &[(String, String)]) -> String {
    let mut text = String::from(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\thooksPath = /dev/null\n\tfsmonitor = false\n\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[credential]\n\thelper =\n[submodule]\n\trecurse = false\n\
         [http]\n\tlowSpeedLimit = 1\n\tlowSpeedTime = 120\n\tfollowRedirects = initial\n[push]\n\tgpgSign = false\n\
         [transfer]\n\tfsckObjects = false\n[protocol]\n\tversion = 2\n",
    );
    for (name, value) in of_user {
        let Some((section, key)) = name.rsplit_once('.') else { continue };
        let header = match section.split_once('.') {
            Some((section, sub)) => format!("[{section} {}]", quoted(sub)),
            None => format!("[{section}]"),
        };
        text.push_str(&format!("{header}\n\t{key} = {}\n", quoted(value)));
    }
    text
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
