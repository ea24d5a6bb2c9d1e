//! What people see, and whether everybody does: without a script, without a mouse, by ear, on a telephone, in the dark, and when
//! there is much.

use serde_json::{Value, json};

use super::{APPROVED, Browser, DESK, Look, PAINTER, ServedBoard, page, skipped};
use crate::support::board::Board;

const OBSERVED: &str = "rollout: {mode: observe}\npr: {forge: local}\n";
/// Everything that a browser needs for the first picture.
const FIRST_PAINT: u64 = 100_000;
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

#[test]
fn five_hundred_tickets_are_shown_and_weigh_little() {
    if skipped() {
        return;
    }
    let served = ServedBoard::new(PAINTER, OBSERVED, |board: &Board| {
        for number in 0..500 {
            let more = if number % 5 == 4 { format!("deps: [t-{}]\n", number - 1) } else { String::new() };
            let title = format!("Paint door number {number} of a house that has more doors than anybody can count");
            let text = format!(
                "---\nid: t-{number}\nstatus: open\n{more}created: 2026-01-01T00:00:00Z\ntype: task\npriority: 2\n---\n# {title}\n\n"
            );
            std::fs::write(board.ticket_path(&format!("t-{number}")), text).unwrap();
        }
    });
    served.board.until("all are known", || served.board.status(&[])["jobs"].as_array().unwrap().len() == 500);
    let browser = Browser::open(DESK);
    browser.go(&page(&served, "/"));
    browser.until("all are counted", || browser.text("#board .top").contains("500 tickets"));
    let shown = browser.script(
        "const rest = [...document.querySelectorAll('#board .rest')].map(p => parseInt(p.textContent.match(/\\d+/)[0]));
         return document.querySelectorAll('#board .card, #board .lines li').length + rest.reduce((a, b) => a + b, 0)",
        &[],
    );
    assert_eq!(shown, json!(500), "every ticket is there, or counted among those that are not");
    let weight = browser.script(
        "const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
         return all.filter(e => !e.name.includes('/api/')).map(e => [e.name, e.transferSize])",
        &[],
    );
    let sum: u64 = weight.as_array().unwrap().iter().map(|one| one[1].as_u64().unwrap()).sum();
    println!("first paint of 500 tickets: {sum} bytes: {weight}");
    assert!(sum > 10_000 && sum < FIRST_PAINT, "{sum} bytes: {weight}");
    let paints =
        "return performance.getEntriesByType('paint').map(e => e.name + ' ' + Math.round(e.startTime) + ' ms')";
    println!("{}", browser.script(paints, &[]));
    browser.keep("500-tickets");

    // All of them on one page, and found by their words.
    browser.go(&page(&served, "/phases/queued"));
    browser.until("all of them", || browser.all("#column .card").len() == 500);
    browser.write("[data-filter]", "number 120 ");
    let left = "return [...document.querySelectorAll('#column .card')].filter(card => !card.hidden).length";
    browser.until("one is left", || browser.script(left, &[]) == json!(1));
    browser.close();
    served.runner.end();
}

#[test]
fn everybody_can_read_it_and_reach_everything() {
    if skipped() {
        return;
    }
    let served = ServedBoard::new(PAINTER, APPROVED, |board| {
        board.ticket("t-1", "Paint the door");
        board.ticket("t-2", "Which colour has the door?");
        board.ticket("t-3", "Paint it slowly");
        board.ticket("t-4", "Varnish it");
        let waiting = board.ticket_text("t-4").replace("deps: []", "deps: [t-1, t-3]");
        std::fs::write(board.ticket_path("t-4"), waiting).unwrap();
    });
    let board = &served.board;
    board.until("it waits for approval", || board.phase("t-1") == "waiting_for_human");
    board.until("it asks", || board.phase("t-2") == "blocked");
    board.until("it works", || board.phase("t-3") == "implementing");

    without_a_script(&served);
    by_ear_and_by_keys(&served);
    on_every_screen(&served);
    served.runner.end();
}

/// The page as the server made it: everything is there, and what can be done is a command to type.
fn without_a_script(served: &ServedBoard) {
    let browser = Browser::open(Look { script: false, ..DESK });
    browser.go(&page(served, "/"));
    let page = browser.text("body");
    for words in ["2 tickets wait for you", "Which colour?", "dirigent approve t-1", "Varnish it", "Without JavaScript"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let buttons: Vec<_> = browser.all("button").into_iter().filter(|button| browser.is_shown(button)).collect();
    assert!(buttons.is_empty(), "a button that does nothing is worse than none");
    browser.click(".column.waiting_for_human .card a.key");
    assert!(browser.address().ends_with("/tickets/t-1"));
    assert!(browser.text("#diff").contains("+<b>blue</b>") && browser.text("#story").contains("waiting for checks"));
    browser.keep("without-script");
    browser.close();
}

fn by_ear_and_by_keys(served: &ServedBoard) {
    let browser = Browser::open(DESK);
    for path in ["/", "/tickets/t-1", "/tickets/t-2", "/phases/blocked"] {
        browser.go(&page(served, path));
        browser.until("it is live", || browser.text("[data-link]") == "live");
        // Nothing moves under our hands while it is looked at.
        browser.script("for (const part of document.querySelectorAll('details')) part.open = true", &[]);
        let controls =
            browser.all("main a[href], main button, main input, main textarea, main summary, .bar a, .bar button");
        let shown: Vec<_> = controls.into_iter().filter(|control| browser.is_shown(control)).collect();
        assert!(shown.len() > 5, "{path} has hardly any controls");
        for control in shown {
            assert!(!browser.label(&control).trim().is_empty(), "{path}: a control has no name: {control:?}");
        }
        let named = browser.script(
            "return [...document.querySelectorAll('main section')].filter(s => !s.hidden && !document.getElementById(s.getAttribute('aria-labelledby'))).map(s => s.outerHTML.slice(0, 80))",
            &[],
        );
        assert_eq!(named, json!([]), "{path}: a section has no name");
        assert_eq!(browser.all("h1").len(), 1, "{path}: one heading says what the page is about");
    }
    browser.go(&page(served, "/"));
    browser.until("it is live", || browser.text("[data-link]") == "live");
    browser.press(&[TAB]);
    assert_eq!(browser.script("return document.activeElement.textContent", &[]), json!("Skip to the content"));
    // Every button can be come to, and it can be seen where one is.
    let mut passed = Vec::new();
    for _ in 0..120 {
        browser.press(&[TAB]);
        let here = browser.script(
            "const here = document.activeElement; return [here.textContent.trim(), getComputedStyle(here).outlineStyle, here.dataset.post || '']",
            &[],
        );
        if here[0].as_str().is_some_and(|text| text.contains("API")) {
            break;
        }
        assert_ne!(here[1], json!("none"), "nobody sees that the focus is on {here}");
        passed.push(here);
    }
    let posts = browser.script(
        "return [...document.querySelectorAll('button[data-post]')].filter(b => b.checkVisibility()).map(b => b.dataset.post)",
        &[],
    );
    for post in posts.as_array().unwrap() {
        assert!(passed.iter().any(|here| here[2] == *post), "{post} cannot be reached by keys: {passed:?}");
    }
    // Enter on a button asks for the token; Escape leaves it, and nothing was done.
    browser.script("document.querySelector('#global button[data-post$=pause]').focus()", &[]);
    browser.press(&[ENTER]);
    let asks = |browser: &Browser| browser.script("return document.querySelector('#ask').open", &[]) == json!(true);
    browser.until("it asks for the token", || asks(&browser));
    browser.press(&[ESCAPE]);
    browser.until("it is left", || !asks(&browser));
    assert!(!served.board.status(&[])["switches"].to_string().contains("pause"), "nothing was done");
    // The keys for those who come often.
    browser.script("document.activeElement.blur()", &[]);
    browser.press(&["j"]);
    browser.until("the first ticket", || {
        browser.script("return document.activeElement.matches('a.key')", &[]) == json!(true)
    });
    browser.press(&["?"]);
    browser.until("the keys are told", || browser.text("#keys").contains("the next ticket"));
    browser.press(&[ESCAPE]);
    browser.press(&["/"]);
    browser.press(&["V", "a", "r"]);
    let left = "return [...document.querySelectorAll('.card')].filter(card => !card.hidden).length";
    browser.until("it is filtered", || browser.script(left, &[]) == json!(1));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.close();
}

fn on_every_screen(served: &ServedBoard) {
    let sizes = [(1280, 900), (390, 844)];
    for (dark, (width, height)) in [false, true].into_iter().flat_map(|dark| sizes.map(|size| (dark, size))) {
        let browser = Browser::open(Look { width, height, dark, script: true });
        let scheme = if dark { "dark" } else { "light" };
        for (name, path) in [("board", "/"), ("ticket", "/tickets/t-1")] {
            browser.go(&page(served, path));
            browser.until("it is live", || browser.text("[data-link]") == "live");
            let wide = browser.script("return [document.documentElement.scrollWidth, innerWidth]", &[]);
            assert!(number(&wide[0]) <= number(&wide[1]), "{name} at {width} has to be scrolled sideways: {wide}");
            let ground = browser.script("return getComputedStyle(document.body).backgroundColor", &[]);
            let is_dark = ground.as_str().unwrap().starts_with("rgb(15,");
            assert_eq!(is_dark, dark, "{scheme}: {ground}");
            browser.keep(&format!("{name}-{scheme}-{width}"));
        }
        browser.close();
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}
