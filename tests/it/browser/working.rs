//! What people do with the page: it follows the board by itself, and its buttons do what they say.

use serde_json::json;

use super::{APPROVED, Browser, DESK, PAINTER, ServedBoard, page, skipped};

#[test]
fn the_page_follows_the_board_and_its_buttons_do_what_they_say() {
    if skipped() {
        return;
    }
    let served = ServedBoard::new(PAINTER, APPROVED, |_| {});
    let (board, browser) = (&served.board, Browser::open(DESK));
    browser.go(&page(&served, "/"));
    browser.until("all is well", || browser.text("h1") == "All is well");
    browser.until("it is live", || browser.text("[data-link]") == "live");
    // If this is still there at the end, the page was never loaded anew.
    browser.script("window.mark = 7", &[]);

    // A click pauses, and asks for the token once.
    browser.click("#global button[data-post='/api/v1/pause']");
    browser.write("#ask input[name=token]", &served.token());
    browser.click("#ask button[value=yes]");
    board.until("it is paused", || board.status(&[])["switches"].to_string().contains("pause_all"));
    browser.until("the page says so", || browser.text("h1") == "Everything is paused");
    browser.keep("paused");

    board.ticket("t-1", "Paint the door");
    browser.until("the ticket is on the page", || browser.text(".column.queued").contains("Paint the door"));
    browser.click("#global button[data-post='/api/v1/resume']");
    assert_eq!(browser.script("return document.querySelector('#ask').open", &[]), json!(false), "asked once");
    board.until("it goes on", || !board.status(&[])["switches"].to_string().contains("pause_all"));

    // It moves by itself, up to where it needs a person.
    browser.until("it waits for approval", || browser.text("#needs").contains("Approve or reject"));
    browser.until("the title says so", || browser.title().starts_with("1 ticket waits for you"));
    assert!(browser.all("#needs button[data-post$='/approve']").is_empty(), "nothing is approved unseen");
    browser.click("#needs a[data-diff]");
    browser.until("the diff is in view", || browser.text("#needs .inline").contains("+<b>blue</b>"));
    browser.keep("approving");
    browser.click("#needs .inline button[data-post$='/approve']");
    board.until("it is merged", || board.phase("t-1") == "done");
    browser.until("the page shows it", || browser.text(".column.done").contains("Paint the door"));

    // A question is answered where it is asked.
    board.ticket("t-2", "Which colour has the door?");
    browser.until("it asks", || browser.text("#needs").contains("Which colour?"));
    // What somebody is typing stays while the page changes around it.
    browser.write("#needs form[data-post$='/answer'] textarea", "Blue");
    board.ticket("t-3", "Paint it slowly");
    browser.until("the other one is at work", || browser.text("#running").contains("Paint it slowly"));
    browser.write("#needs form[data-post$='/answer'] textarea", ", please.");
    browser.click("#needs form[data-post$='/answer'] button");
    board.until("the answer counts", || board.phase("t-2") == "waiting_for_human");
    assert!(board.ok(&["explain", "t-2"]).contains("Blue, please."), "as it was typed");

    // What it said, and stopping it.
    browser.until("its words are there", || browser.text("#running").contains("mixing the paint"));
    browser.go(&page(&served, "/tickets/t-3"));
    browser.click("#ticket button[data-post$='/stop']");
    browser.click("#sure button[value=yes]");
    board.until("it is stopped", || board.phase("t-3") == "blocked");
    browser.until("its page shows it", || browser.text("#ticket").contains("a person stopped it"));
    browser.keep("ticket");
    browser.go(&page(&served, "/"));

    // Titles are text, whatever they hold.
    let evil = "<script>window.evil = 1</script><img src=x onerror=\"window.evil = 2\">";
    board.ticket("t-4", &format!("{evil} slowly"));
    browser.until("it is text", || browser.text("#board").contains("<script>window.evil = 1</script>"));
    browser.go(&page(&served, "/tickets/t-4"));
    browser.until("here, too", || browser.text("h1").contains("<script>"));
    assert_eq!(browser.script("return typeof window.evil", &[]), json!("undefined"));
    assert_eq!(browser.all("main img[src=x], main script").len(), 0);
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "the browser complains: {complaints:#?}");
    browser.close();
    served.runner.end();
}

#[test]
fn the_page_is_changed_in_place_and_says_when_the_runner_is_gone() {
    if skipped() {
        return;
    }
    let served = ServedBoard::new(PAINTER, APPROVED, |board| board.ticket("t-1", "Paint the first door slowly"));
    let browser = Browser::open(DESK);
    browser.go(&page(&served, "/"));
    browser.until("it is live", || browser.text("[data-link]") == "live");
    browser.until("it is at work", || browser.text("#running").contains("Paint the first door"));
    browser.script("window.mark = 7; document.querySelector('.card a.key').focus()", &[]);
    served.board.ticket("t-2", "Paint the second door slowly");
    browser.until("the second one is there", || browser.text("#running").contains("Paint the second door"));
    let focused = browser.script("return [window.mark, document.activeElement.textContent]", &[]);
    assert_eq!(focused, json!([7, "t-1"]), "neither loaded anew nor taken from under the hands");
    served.runner.end();
    browser.until("it says so", || browser.text("[data-link]").starts_with("not connected"));
    assert!(browser.text("#running").contains("Paint the second door"), "what was seen last stays");
    browser.close();
}

#[test]
fn where_looking_needs_a_token_the_page_asks_for_it() {
    if skipped() {
        return;
    }
    let wide = format!("{APPROVED}server: {{port: 0, host: 0.0.0.0, token: $OWN}}\n");
    let token = "0123456789abcdef0123";
    let served = ServedBoard::with(PAINTER, &wide, &[("OWN", token)], |board| board.ticket("t-1", "Paint it slowly"));
    let address = format!("http://127.0.0.1:{}", served.address.rsplit(':').next().unwrap());
    let browser = Browser::open(DESK);
    browser.go(&format!("{address}/tickets/t-1"));
    browser.until("it asks", || browser.text("h1") == "A token, please");
    assert!(!browser.text("body").contains("Paint it slowly"), "nothing of the board is shown before");
    browser.write("form[data-login] input", token);
    browser.click("form[data-login] button");
    browser.until("where one wanted to go", || browser.text("h1").contains("Paint it slowly"));
    browser.until("and live", || browser.text("[data-link]") == "live");
    // The same token does for the buttons.
    browser.click("#ticket button[data-post$='/pause']");
    served.until("it is paused", || served.board.status(&[])["switches"].to_string().contains("pause_ticket"));
    browser.close();
    served.runner.end();
}
