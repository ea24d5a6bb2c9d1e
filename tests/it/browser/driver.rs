//! A real browser, driven from here: WebDriver is HTTP and JSON, and that is all it takes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};

use crate::support::board::PATIENCE;

/// What a window is like.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
    pub script: bool,
}

pub const DESK: Look = Look { width: 1280, height: 900, dark: false, script: true };

/// One window of a browser with a profile of its own. Ends with the test, and leaves no process.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: tempfile::TempDir,
    home: tempfile::TempDir,
}

/// An element of the page.
#[derive(Debug, Clone)]
pub struct Element(String);

const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Why there is no browser here, if there is none.
pub fn missing() -> Option<String> {
    let lacks = |program: &str| Command::new(program).arg("--version").output().is_err();
    ["chromium", "chromedriver"]
        .into_iter()
        .find(|program| lacks(program))
        .map(|program| format!("there is no {program}"))
}

impl Browser {
    pub fn open(look: Look) -> Self {
        let (profile, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut driver = Command::new("chromedriver");
        driver.arg("--port=0").env("HOME", home.path()).env("XDG_CONFIG_HOME", home.path()).env("TMPDIR", home.path());
        // A proxy is for others than this machine.
        for proxy in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            driver.env_remove(proxy);
        }
        driver.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut driver = driver.spawn().unwrap();
        let mut said = BufReader::new(driver.stdout.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "chromedriver ended before it was ready");
            let port = line.rsplit("on port ").next().filter(|_| line.contains("started successfully"));
            if let Some(port) = port.and_then(|rest| rest.trim().trim_end_matches('.').parse().ok()) {
                break port;
            }
        };
        // It goes on talking, and must not be held up by that.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let mut browser = Self { driver, port, session: String::new(), profile, home };
        let place = browser.profile.path().display();
        let size = format!("--window-size={},{}", look.width, look.height);
        let args = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--no-first-run".to_owned(),
            "--no-proxy-server".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--user-data-dir={place}"),
            size,
        ];
        let mut options = json!({ "args": args });
        if look.width < 500 {
            let metrics = json!({ "width": look.width, "height": look.height, "pixelRatio": 1.0 });
            options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
        }
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let made = browser.ask("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = made["sessionId"].as_str().unwrap().to_owned();
        let scheme = if look.dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        browser.devtools("Emulation.setEmulatedMedia", &media);
        if !look.script {
            browser.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
        }
        browser
    }

    /// One exchange. An error of the browser's ends the test.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_ask(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    fn try_ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let text = if method == "POST" { body.to_string() } else { String::new() };
        let failed = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.port,
            text.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes())).map_err(failed)?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).map_err(failed)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).map_err(failed)?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        let value = answer["value"].clone();
        if value.get("error").is_some_and(Value::is_string) { Err(value.to_string()) } else { Ok(value) }
    }

    fn in_session(&self, path: &str) -> String {
        format!("/session/{}{path}", self.session)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &self.in_session(path), body)
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", &self.in_session(path), &Value::Null)
    }

    pub fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    pub fn go(&self, address: &str) {
        self.post("/url", &json!({ "url": address }));
    }

    pub fn title(&self) -> String {
        self.get("/title").as_str().unwrap().to_owned()
    }

    pub fn address(&self) -> String {
        self.get("/url").as_str().unwrap().to_owned()
    }

    /// What a script answers; `args` are its `arguments`.
    pub fn script(&self, text: &str, args: &[Value]) -> Value {
        self.post("/execute/sync", &json!({ "script": text, "args": args }))
    }

    pub fn all(&self, selector: &str) -> Vec<Element> {
        let found = self.post("/elements", &json!({ "using": "css selector", "value": selector }));
        found.as_array().unwrap().iter().map(|one| Element(one[ELEMENT].as_str().unwrap().to_owned())).collect()
    }

    /// The first one, as soon as there is one.
    pub fn find(&self, selector: &str) -> Element {
        let mut found = Vec::new();
        self.until(selector, || {
            found = self.all(selector);
            !found.is_empty()
        });
        found.remove(0)
    }

    /// `None` where the page has changed under our hands.
    fn try_get(&self, element: &Element, what: &str) -> Option<Value> {
        self.try_ask("GET", &self.in_session(&format!("/element/{}/{what}", element.0)), &Value::Null).ok()
    }

    pub fn text(&self, selector: &str) -> String {
        let texts = self.all(selector).into_iter().filter_map(|element| self.try_get(&element, "text"));
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<_>>().join("\n")
    }

    /// What a screen reader calls it.
    pub fn label(&self, element: &Element) -> String {
        self.try_get(element, "computedlabel").and_then(|label| label.as_str().map(str::to_owned)).unwrap_or_default()
    }

    pub fn is_shown(&self, element: &Element) -> bool {
        self.try_get(element, "displayed") == Some(Value::Bool(true))
    }

    pub fn click(&self, selector: &str) {
        let mut last = String::new();
        let click = || {
            let element = self.find(selector);
            let done = self.try_ask("POST", &self.in_session(&format!("/element/{}/click", element.0)), &json!({}));
            last = done.as_ref().err().cloned().unwrap_or_default();
            done.is_ok()
        };
        self.until(&format!("a click on {selector}"), click);
    }

    pub fn write(&self, selector: &str, text: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{}/value", element.0), &json!({ "text": text }));
    }

    /// One key after the other, wherever the focus is.
    pub fn press(&self, keys: &[&str]) {
        let both = |key: &&str| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })];
        let actions: Vec<Value> = keys.iter().flat_map(both).collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// Looks until it holds.
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            if began.elapsed() > PATIENCE {
                self.keep("failed");
                panic!("never came about in the browser: {what}\n{}", self.text("body"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Everything that the page complained about, such as what its own policy forbids.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }));
        let errors = entries.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE");
        errors.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The whole page as a picture, below the build directory.
    pub fn keep(&self, name: &str) -> PathBuf {
        let size =
            self.script("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]", &[]);
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1].as_u64().unwrap_or(900).min(6000), "scale": 1 });
        let shot = self.devtools(
            "Page.captureScreenshot",
            &json!({ "format": "png", "captureBeyondViewport": true, "clip": clip }),
        );
        let bytes = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, bytes).unwrap();
        println!("kept: {}", path.display());
        path
    }

    /// The processes of this very browser: it has a profile that no other one has.
    fn processes(&self) -> Vec<i32> {
        let (profile, home) = (self.profile.path().display().to_string(), self.home.path().display().to_string());
        let is_ours = |pid: &i32| {
            let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let (said, around) = (read("cmdline"), read("environ"));
            let (said, around) =
                (String::from_utf8_lossy(&said).into_owned(), String::from_utf8_lossy(&around).into_owned());
            !said.is_empty() && (said.contains(&profile) || around.contains(&home))
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).filter(is_ours).collect()
    }

    /// Closes the window, and holds that nothing is left of it.
    pub fn close(mut self) {
        self.end();
        assert_eq!(self.processes(), Vec::<i32>::new(), "processes of the browser are left");
    }

    fn end(&mut self) {
        let _ = self.try_ask("DELETE", &self.in_session(""), &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let began = Instant::now();
        // What was orphaned has to be ended by us; its zombies are somebody else's to collect.
        while !self.processes().is_empty() && began.elapsed() < Duration::from_secs(20) {
            for pid in self.processes() {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.end();
    }
}
