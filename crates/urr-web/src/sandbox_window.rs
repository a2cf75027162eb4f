//! The payment window of the sandbox: `/sandbox/pay`.
//!
//! It plays the window that a real provider opens: it shows shop, order and amount, lets the buyer
//! choose a test card, and sends the browser back with `paymentKey`, `orderId` and `amount`, or with
//! `code` and `message` if the buyer gives up. It exists only where the provider is the sandbox, and
//! returns only to pages of this site.

use askama::Template;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use form_urlencoded::Serializer;
use serde::Deserialize;
use serde_json::json;
use urr_service::read_body;

use crate::content_policy::{ProviderScripts, content_policy};
use crate::language::PageLanguage;
use crate::page_api::{ApiRefusal, ApiRequest, Asker};
use crate::queue_page::ICON;
use crate::{Pages, WebPages};

const FORM_BYTES_MAX: usize = 16 * 1024;
/// As Toss calls it when a buyer closes the window.
const GIVEN_UP: &str = "PAY_PROCESS_CANCELED";

pub fn routes() -> Router<WebPages> {
    Router::new().route("/sandbox/pay", get(get_window).post(choose_card))
}

/// A test card and what it does, in Korean and English.
struct CardText(&'static str, &'static str, &'static str);

const CARDS: [CardText; 15] = [
    CardText("approve", "결제됩니다", "Is charged"),
    CardText("slow", "3초 뒤에 결제됩니다", "Is charged after three seconds"),
    CardText("decline", "카드사가 거절합니다", "Is declined by the bank"),
    CardText("insufficient", "잔액이 부족합니다", "Has not enough money"),
    CardText("timeout", "결제되지 않고 응답도 없습니다", "Is never charged, without an answer"),
    CardText("stumble", "첫 시도는 사라지고 다음에 결제됩니다", "Is charged at the second attempt"),
    CardText("charge-timeout", "결제되지만 응답이 사라집니다", "Is charged; the answer is lost"),
    CardText("charge-500", "결제되지만 오류라고 답합니다", "Is charged; the answer is a failure"),
    CardText("duplicate", "결제되지만 중복이라고 답합니다", "Is charged; said to be a duplicate"),
    CardText("wrong-amount", "1원 적게 결제됩니다", "Is charged one won too little"),
    CardText("test-channel", "테스트 채널로 결제됩니다", "Is charged by a channel for tests"),
    CardText("unknown-code", "알 수 없는 코드로 거절됩니다", "Is refused with an unknown code"),
    CardText(
        "refund-timeout",
        "환불되지만 응답이 사라집니다",
        "A refund is made; the answer is lost",
    ),
    CardText("refund-decline", "환불이 거절됩니다", "Every refund is declined"),
    CardText("refund-whole", "전액 환불만 됩니다", "Can only be refunded whole"),
];

struct CardView {
    name: &'static str,
    text: &'static str,
    is_first: bool,
}

/// What the shop asks for, in the query of the window and again in its form.
#[derive(Debug, Default, PartialEq, Eq)]
struct Checkout {
    order_id: String,
    success_url: String,
    fail_url: String,
    /// Empty if the buyer gives up.
    card: String,
}

#[derive(Deserialize)]
struct OrderAnswer {
    payment: OrderFacts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderFacts {
    order_name: String,
    amount: i64,
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyAnswer {
    payment_key: String,
    order_id: String,
    amount: i64,
}

#[derive(Template)]
#[template(path = "sandbox_window.html")]
struct WindowPage<'a> {
    language: PageLanguage,
    checkout: &'a Checkout,
    order: Option<(String, String)>,
    /// Why nothing can be paid.
    problem: &'static str,
    login_path: String,
    cards: Vec<CardView>,
    icon: &'static str,
    style_path: &'a str,
}

impl WindowPage<'_> {
    fn say(&self, korean: &'static str, english: &'static str) -> &'static str {
        self.language.pick(korean, english)
    }
}

impl Checkout {
    fn parse(pairs: &[u8]) -> Checkout {
        let mut checkout = Checkout::default();
        for (name, value) in form_urlencoded::parse(pairs) {
            let field = match &*name {
                "orderId" => &mut checkout.order_id,
                "successUrl" => &mut checkout.success_url,
                "failUrl" => &mut checkout.fail_url,
                "card" => &mut checkout.card,
                _ => continue,
            };
            *field = value.into_owned();
        }
        checkout
    }

    /// The pages to return to, if both are of this site.
    fn return_paths(&self, headers: &HeaderMap) -> Option<(String, String)> {
        let own = |url: &str| own_path(url, headers).map(str::to_owned);
        Some((own(&self.success_url)?, own(&self.fail_url)?))
    }

    fn is_order_id(&self) -> bool {
        let id = &self.order_id;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        (1..=64).contains(&id.len()) && id.bytes().all(is_plain)
    }
}

async fn get_window(State(WebPages(pages)): State<WebPages>, request: Request) -> Response {
    let (client, _) = request.into_parts();
    let language = PageLanguage::of(&client.headers);
    if !pages.settings.has_sandbox {
        return pages.site.not_found(language);
    }
    let checkout = Checkout::parse(client.uri.query().unwrap_or_default().as_bytes());
    let order = find_order(&pages, &checkout, language, &client).await;
    window(&pages, language, &client, &checkout, order)
}

async fn choose_card(State(WebPages(pages)): State<WebPages>, request: Request) -> Response {
    let (client, body) = request.into_parts();
    let language = PageLanguage::of(&client.headers);
    if !pages.settings.has_sandbox {
        return pages.site.not_found(language);
    }
    let form = match read_body(body, FORM_BYTES_MAX).await {
        Ok(form) => form,
        Err(refused) => return refused.status().into_response(),
    };
    let checkout = Checkout::parse(&form);
    let Some((success, fail)) = checkout.return_paths(&client.headers) else {
        return window(&pages, language, &client, &checkout, None);
    };
    if checkout.card.is_empty() {
        let message = language.pick("결제를 취소했습니다", "The payment was given up");
        let answer = [("code", GIVEN_UP), ("message", message), ("orderId", &checkout.order_id)];
        return back_to(&fail, &answer);
    }
    let request = ApiRequest {
        method: Method::POST,
        path: "/api/payments/sandbox/keys".to_owned(),
        body: Some(json!({ "orderId": checkout.order_id, "card": checkout.card })),
        client: &client,
        asker: Asker::Client,
        language,
    };
    match pages.api.call::<KeyAnswer>(request).await {
        Ok(KeyAnswer { payment_key, order_id, amount }) => {
            let amount = amount.to_string();
            let answer =
                [("paymentKey", &*payment_key), ("orderId", &order_id), ("amount", &amount)];
            back_to(&success, &answer)
        }
        Err(refusal) => window(&pages, language, &client, &checkout, Some(Err(refusal))),
    }
}

async fn find_order(
    pages: &Pages,
    checkout: &Checkout,
    language: PageLanguage,
    client: &Parts,
) -> Option<Result<OrderFacts, ApiRefusal>> {
    checkout.return_paths(&client.headers)?;
    if !checkout.is_order_id() {
        return Some(Err(ApiRefusal { status: StatusCode::NOT_FOUND, code: String::new() }));
    }
    let request = ApiRequest {
        method: Method::GET,
        path: format!("/api/payments/order/{}", checkout.order_id),
        body: None,
        client,
        asker: Asker::Client,
        language,
    };
    let answer = pages.api.call::<OrderAnswer>(request).await;
    Some(answer.map(|answer| answer.payment))
}

/// The window. Without an order it says why; `None` is a return address that is not ours.
fn window(
    pages: &Pages,
    language: PageLanguage,
    client: &Parts,
    checkout: &Checkout,
    order: Option<Result<OrderFacts, ApiRefusal>>,
) -> Response {
    let (status, problem, order) = match order {
        None => {
            let korean = "돌아갈 주소가 이 사이트의 주소가 아닙니다.";
            let english = "The address to return to is not one of this site.";
            (StatusCode::BAD_REQUEST, language.pick(korean, english), None)
        }
        Some(Err(refusal)) => (refusal.status, problem_text(&refusal, language), None),
        Some(Ok(order)) if order.status != "pending" => {
            let over = language.pick("이미 끝난 주문입니다.", "This order has ended.");
            (StatusCode::CONFLICT, over, None)
        }
        Some(Ok(order)) => (StatusCode::OK, "", Some((order.order_name, won(order.amount)))),
    };
    let query = client.uri.query().unwrap_or_default();
    let next: String =
        form_urlencoded::byte_serialize(format!("/sandbox/pay?{query}").as_bytes()).collect();
    let is_anonymous = status == StatusCode::UNAUTHORIZED && !query.is_empty();
    let cards = CARDS.iter().enumerate().map(|(index, CardText(name, korean, english))| CardView {
        name,
        text: language.pick(korean, english),
        is_first: index == 0,
    });
    let page = WindowPage {
        language,
        checkout,
        order,
        problem,
        login_path: if is_anonymous { format!("/login?return={next}") } else { String::new() },
        cards: cards.collect(),
        icon: ICON,
        style_path: pages.queue.assets.style_path(),
    };
    let html = page.render().expect("a text takes it");
    let policy = content_policy(&html, ProviderScripts::default());
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, html).into_response()
}

fn problem_text(refusal: &ApiRefusal, language: PageLanguage) -> &'static str {
    match (refusal.status, refusal.code.as_str()) {
        (StatusCode::UNAUTHORIZED, _) => {
            language.pick("로그인한 뒤 결제할 수 있습니다.", "Please log in to pay.")
        }
        (StatusCode::NOT_FOUND, _) => {
            language.pick("주문을 찾을 수 없습니다.", "There is no such order.")
        }
        (_, "INVALID_PAYMENT_METHOD") => {
            language.pick("그런 시험 카드는 없습니다.", "There is no such test card.")
        }
        (_, "ORDER_OVER") => language.pick("이미 끝난 주문입니다.", "This order has ended."),
        _ => language.pick("잠시 후 다시 시도해 주세요.", "Please try again in a moment."),
    }
}

/// The path and query of an address of this site. An address that a browser could read as another
/// host's is none.
fn own_path<'a>(url: &'a str, headers: &HeaderMap) -> Option<&'a str> {
    let after_scheme = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let path = match after_scheme {
        None => url,
        Some(rest) => {
            let host = headers.get(header::HOST)?.to_str().ok()?;
            rest.strip_prefix(host).filter(|_| !host.is_empty())?
        }
    };
    let is_path = path.starts_with('/') && !path.starts_with("//");
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\#\"<>".contains(&byte);
    (is_path && path.len() <= 2_000 && path.bytes().all(is_plain)).then_some(path)
}

fn back_to(path: &str, answer: &[(&str, &str)]) -> Response {
    let pairs = Serializer::new(String::new()).extend_pairs(answer).finish();
    let joint = if path.contains('?') { '&' } else { '?' };
    (StatusCode::SEE_OTHER, [(LOCATION, format!("{path}{joint}{pairs}"))]).into_response()
}

/// `102000` is `102,000`.
fn won(amount: i64) -> String {
    let digits = amount.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buyer_returns_only_to_a_page_of_this_site() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("urr.kr"));
        let own = |url| own_path(url, &headers);
        assert_eq!(own("/checkout/1/result?a=b"), Some("/checkout/1/result?a=b"));
        assert_eq!(own("https://urr.kr/a"), Some("/a"));
        assert_eq!(own("http://urr.kr/a"), Some("/a"));
        for foreign in [
            "",
            "checkout",
            "//evil.kr/a",
            "/\\evil.kr",
            "https://evil.kr/a",
            "https://urr.kr.evil.kr/a",
            "https://urr.kr@evil.kr/a",
            "https://urr.kr",
            "https://urr.kr//evil.kr",
            "https://urr.kr:8443/a",
            "javascript:alert(1)",
            "/a\r\nset-cookie: x",
            "/a b",
            "/a#b",
        ] {
            assert_eq!(own(foreign), None, "{foreign:?}");
        }
        assert_eq!(own_path("https://urr.kr/a", &HeaderMap::new()), None, "no host, no site");
    }

    #[test]
    fn won_are_written_in_groups() {
        assert_eq!([5, 999, 1_000, 1_234_567].map(won), ["5", "999", "1,000", "1,234,567"]);
    }
}
