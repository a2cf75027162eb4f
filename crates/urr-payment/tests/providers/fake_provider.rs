//! What the stand-ins of Toss and PortOne have in common: books, faults, and a real socket.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tower::ServiceExt;
use urr_outbound::BODY_BYTES_MAX;

/// Longer than anything should take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What goes wrong with the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and nobody answers.
    Silence,
    /// Nothing is done, and the connection is reset.
    Reset,
    /// Nothing is done, and the answer is this status with this code.
    Refusal(u16, &'static str),
    /// Nothing is done, and the answer is this: for good, to whoever asks by the same key.
    RefusalForGood(u16, &'static str),
    /// Nothing is done, and somebody on the way answers with a page.
    Page(u16),
    /// What was asked for is done, and nobody answers.
    ActThenSilence,
    ActThenFail,
    ActThenReset,
    ActThenGarbage,
    ActThenHugeBody,
    /// What was asked for is done, and the answer comes when the test lets it.
    Slow,
    /// So much more is charged or given back than was asked for.
    OtherAmount(i64),
    /// What was asked for is done, and one field of the answer says something else.
    Says(&'static str, &'static str),
}

/// A payment in the books of the stand-in.
#[derive(Clone, Debug)]
pub struct Sale {
    pub order_id: String,
    pub payment_key: String,
    /// What the buyer agreed to.
    pub amount: i64,
    pub charges: Vec<i64>,
    pub returns: Vec<i64>,
    pub is_dead: bool,
    pub account: Account,
    /// The type and the key of the channel that the buyer's browser chose.
    pub channel: (&'static str, &'static str),
}

/// The channel that the shop has configured.
pub const LIVE_CHANNEL: (&str, &str) = ("LIVE", "channel-key-893597d6");

/// An account for the buyer to pay into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Account {
    #[default]
    None,
    /// The buyer has chosen to pay so.
    Wanted,
    Waiting,
    Closed,
}

impl Sale {
    pub fn charged(&self) -> i64 {
        self.charges.iter().sum()
    }

    pub fn refunded(&self) -> i64 {
        self.returns.iter().sum()
    }
}

pub type Answer = (u16, Value);

#[derive(Default)]
pub struct Books {
    pub sales: Vec<Sale>,
    /// The first answer to each idempotency key.
    answers: HashMap<String, Answer>,
    /// What the next move of money is off by.
    pub off_by: i64,
}

impl Books {
    pub fn of_order(&mut self, order_id: &str) -> Option<&mut Sale> {
        self.sales.iter_mut().find(|sale| sale.order_id == order_id)
    }

    pub fn of_key(&mut self, payment_key: &str) -> Option<&mut Sale> {
        self.sales.iter_mut().find(|sale| sale.payment_key == payment_key)
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

pub struct FakeProvider {
    books: Mutex<Books>,
    /// For requests that change something, and for those that look.
    change_faults: Mutex<VecDeque<Fault>>,
    look_faults: Mutex<VecDeque<Fault>>,
    seen: Mutex<Vec<Seen>>,
    /// How this provider writes a refusal.
    refusal: fn(&str) -> Value,
    arrived: Notify,
    release: Notify,
}

impl FakeProvider {
    pub fn new(refusal: fn(&str) -> Value) -> FakeProvider {
        FakeProvider {
            books: Mutex::default(),
            change_faults: Mutex::default(),
            look_faults: Mutex::default(),
            seen: Mutex::default(),
            refusal,
            arrived: Notify::new(),
            release: Notify::new(),
        }
    }

    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    pub fn fail_next_change(&self, fault: Fault) {
        self.change_faults.lock().unwrap().push_back(fault);
    }

    pub fn fail_next_look(&self, fault: Fault) {
        self.look_faults.lock().unwrap().push_back(fault);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn note(&self, path: String, headers: &HeaderMap, body: &Value) {
        let seen = Seen { path, headers: headers.clone(), body: body.clone() };
        self.seen.lock().unwrap().push(seen);
    }

    /// Waits until a slow request is there.
    pub async fn arrival(&self) {
        let arrival = tokio::time::timeout(PATIENCE, self.arrived.notified()).await;
        arrival.expect("the request arrives");
    }

    /// Lets a slow request have its answer.
    pub fn release(&self) {
        self.release.notify_one();
    }

    /// Does what is asked for, once per key, unless it is to go wrong.
    pub async fn change(&self, key: String, act: impl FnOnce(&mut Books) -> Answer) -> Response {
        let fault = self.change_faults.lock().unwrap().pop_front();
        if let Some(response) = self.fail_before(fault).await {
            return response;
        }
        if let Some(Fault::RefusalForGood(status, code)) = fault {
            self.books().answers.entry(key.clone()).or_insert_with(|| self.refuse(status, code));
        }
        let answer = {
            let mut books = self.books();
            books.off_by = if let Some(Fault::OtherAmount(by)) = fault { by } else { 0 };
            match books.answers.get(&key).cloned() {
                Some(answer) => answer,
                None => {
                    let answer = act(&mut books);
                    books.answers.insert(key, answer.clone());
                    answer
                }
            }
        };
        self.fail_after(fault, answer).await
    }

    pub async fn look(&self, look: impl FnOnce(&mut Books) -> Answer) -> Response {
        let fault = self.look_faults.lock().unwrap().pop_front();
        if let Some(response) = self.fail_before(fault).await {
            return response;
        }
        let answer = look(&mut self.books());
        self.fail_after(fault, answer).await
    }

    pub fn refuse(&self, status: u16, code: &str) -> Answer {
        (status, (self.refusal)(code))
    }

    async fn fail_before(&self, fault: Option<Fault>) -> Option<Response> {
        match fault? {
            Fault::Silence => std::future::pending().await,
            Fault::Reset => Some(reset()),
            Fault::Refusal(status, code) => Some(send(self.refuse(status, code))),
            Fault::Page(status) => {
                Some((StatusCode::from_u16(status).unwrap(), "<html>nginx</html>").into_response())
            }
            _ => None,
        }
    }

    async fn fail_after(&self, fault: Option<Fault>, mut answer: Answer) -> Response {
        match fault {
            Some(Fault::Says(field, other)) => {
                assert!(answer.1.get(field).is_some(), "the answer has a field {field}");
                answer.1[field] = Value::from(other);
                send(answer)
            }
            Some(Fault::ActThenSilence) => std::future::pending().await,
            Some(Fault::ActThenFail) => send(self.refuse(500, "FAILED_INTERNAL_SYSTEM_PROCESSING")),
            Some(Fault::ActThenReset) => reset(),
            Some(Fault::ActThenGarbage) => "{\"paymentKey\": tru".into_response(),
            Some(Fault::ActThenHugeBody) => vec![b' '; BODY_BYTES_MAX + 1].into_response(),
            Some(Fault::Slow) => {
                self.arrived.notify_one();
                self.release.notified().await;
                send(answer)
            }
            _ => send(answer),
        }
    }
}

pub fn send((status, body): Answer) -> Response {
    (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
}

/// Marks an answer that is never sent: the connection is reset instead.
#[derive(Clone)]
struct ResetInstead;

fn reset() -> Response {
    let mut response = Response::default();
    response.extensions_mut().insert(ResetInstead);
    response
}

/// Serves on a free port of this machine, and says where.
pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // What is closed before its time is reset.
            stream.set_zero_linger().unwrap();
            let router = router.clone();
            let service = service_fn(move |request| {
                let router = router.clone();
                async move {
                    let answer: Result<Response, Infallible> = router.oneshot(request).await;
                    let Ok(answer) = answer;
                    match answer.extensions().get::<ResetInstead>() {
                        Some(ResetInstead) => Err(io::Error::other("reset")),
                        None => Ok(answer),
                    }
                }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A connection that ends badly is what some tests want.
            tokio::spawn(async move { connection.await.ok() });
        }
    });
    format!("http://{address}")
}
