//! A shop with something in every table: accounts of every role, events, a purchase, a listing, a
//! membership.

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use serde_json::{Value, json};
use urr_kernel::Clock;
use urr_service::UserRole;

use crate::http_client::{Reply, request};
use crate::process::{Installation, Running, eventually};

const PASSWORD: &str = "a long enough secret";
const ROLES: [UserRole; 4] =
    [UserRole::User, UserRole::Staff, UserRole::Organiser, UserRole::Support];

pub struct Shop {
    port: u16,
    /// By role: the token, and the id of the account.
    accounts: Vec<(UserRole, String, String)>,
    entry_token: String,
    /// By `path name`, or by the name of a parameter or field alone.
    pub ids: Value,
}

impl Shop {
    pub fn open(installation: &Installation, running: &Running) -> Result<Shop> {
        let admin = create_admin(installation, running.port)?;
        let mut shop = Shop {
            port: running.port,
            accounts: vec![(UserRole::Admin, admin, String::new())],
            entry_token: String::new(),
            ids: Value::Null,
        };
        for role in ROLES {
            let account = shop.register(role)?;
            shop.accounts.push(account);
        }
        shop.fill()?;
        Ok(shop)
    }

    /// The headers of a role's requests.
    pub fn headers(&self, role: Option<UserRole>) -> Vec<String> {
        let Some(role) = role else { return Vec::new() };
        let mut headers = vec![format!("Authorization: Bearer {}", self.token(role))];
        if role == UserRole::User {
            headers.push(format!("x-queue-entry-token: {}", self.entry_token));
        }
        headers
    }

    fn token(&self, role: UserRole) -> &str {
        let account = self.accounts.iter().find(|(known, ..)| *known == role);
        account.map(|(_, token, _)| token.as_str()).unwrap_or_default()
    }

    fn user_id(&self, role: UserRole) -> &str {
        let account = self.accounts.iter().find(|(known, ..)| *known == role);
        account.map(|(.., id)| id.as_str()).unwrap_or_default()
    }

    fn ask(&self, role: Option<UserRole>, method: &str, path: &str, body: &Value) -> Result<Reply> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse()?);
        if let Some(role) = role {
            headers.insert("authorization", format!("Bearer {}", self.token(role)).parse()?);
            if role == UserRole::User && !self.entry_token.is_empty() {
                headers.insert("x-queue-entry-token", self.entry_token.parse()?);
            }
        }
        request(self.port, method, path, &headers, &body.to_string())
    }

    /// The answer to a request that succeeds.
    fn make(&self, role: UserRole, method: &str, path: &str, body: &Value) -> Result<Value> {
        let reply = self.ask(Some(role), method, path, body)?;
        ensure!(matches!(reply.status, 200..=299), "{method} {path}: {reply:?}");
        if reply.body.is_empty() { Ok(Value::Null) } else { reply.json() }
    }

    fn register(&self, role: UserRole) -> Result<(UserRole, String, String)> {
        let terms = self.ask(None, "GET", "/api/auth/terms", &json!({}))?.json()?;
        let required = terms["terms"].as_array().into_iter().flatten();
        let agreed = required
            .filter(|it| it["required"] == true)
            .map(|it| json!({ "type": it["type"], "version": it["version"], "agreed": true }));
        let email = format!("{role}@example.com");
        let body = json!({ "email": email, "password": PASSWORD, "name": "김팬",
            "phone": "010-1234-5678", "terms": agreed.collect::<Vec<_>>() });
        let reply = self.ask(None, "POST", "/api/auth/register", &body)?;
        ensure!(reply.status == 201, "{reply:?}");
        let user = reply.json()?["user"].take();
        let id = text(&user["userId"]).or_else(|_| text(&user["id"]))?;
        if role != UserRole::User {
            let path = format!("/api/auth/admin/users/{id}/role");
            self.make(UserRole::Admin, "PUT", &path, &json!({ "role": role.as_str() }))?;
        }
        let body = json!({ "email": email, "password": PASSWORD });
        let reply = self.ask(None, "POST", "/api/auth/login", &body)?;
        ensure!(reply.status == 200, "{reply:?}");
        Ok((role, text(&reply.json()?["token"])?, id))
    }

    fn fill(&mut self) -> Result<()> {
        use UserRole::{Admin, Organiser, User};
        let artist = json!({ "name": "새벽 밴드", "membershipPrice": 30_000 });
        let artist = self.make(Admin, "POST", "/api/admin/artists", &artist)?;
        let artist = text(&artist["artist"]["id"])?;
        let venue = json!({ "name": "새벽 극장", "address": "서울 한강로 1" });
        let venue = self.make(Admin, "POST", "/api/admin/venues", &venue)?;
        let venue = text(&venue["venue"]["id"])?;
        let grades = json!([{ "grade": "R", "fromRow": 1, "toRow": 10 }]);
        let grid = json!({ "rows": 10, "seatsPerRow": 20, "gradeMapping": grades });
        let path = format!("/api/admin/venues/{venue}/halls");
        let hall = self.make(Admin, "POST", &path, &json!({ "name": "대극장", "grid": grid }))?;
        let hall = text(&hall["hall"]["id"])?;
        let [seated, standing, spare] = self.create_events(&hall, &venue)?;
        let types = self.ask(None, "GET", &format!("/api/events/{standing}"), &json!({}))?;
        let ticket_type = text(&types.json()?["event"]["ticketTypes"][0]["id"])?;
        self.enter(&seated)?;
        let (reservation, payment) = self.buy(&seated, 0)?;
        let (listed, _) = self.buy(&seated, 1)?;
        let body = json!({ "reservationId": listed });
        let transfer = self.make(User, "POST", "/api/transfers", &body)?;
        let body = json!({ "artistId": artist });
        self.make(User, "POST", "/api/memberships/subscribe", &body)?;
        let staff = self.user_id(UserRole::Staff).to_owned();
        let path = format!("/api/admin/events/{seated}/staff/{staff}");
        self.make(Organiser, "PUT", &path, &json!({}))?;
        let user = self.user_id(UserRole::User).to_owned();
        let mails = self.make(Admin, "GET", "/api/admin/mails", &json!({}))?;
        let mail = mails["mails"][0]["id"].clone();
        let writings = self.write(&artist)?;
        self.ids = json!({
            "eventId": [seated, standing], "artistId": [artist], "venueId": [venue],
            "hallId": [hall], "ticketTypeId": [ticket_type], "userId": [user, staff],
            "reservationId": [reservation, listed], "seatIds": [[10, 11], [12], [13, 14, 15]],
            "orderId": [payment["orderId"]], "paymentKey": [payment["paymentKey"]],
            "provider": ["google", "sandbox"],
            // A slot that is left is no slot.
            "/api/queue/leave/{eventId} eventId": [standing],
            "/api/events/{id} id": [seated, standing],
            "/api/admin/events/{id} id": [spare, seated],
            "/api/admin/events/{id}/cancel id": [spare],
            "/api/admin/events/{eventId}/tickets eventId": [standing],
            "/api/admin/tickets/{id} id": [ticket_type],
            "/api/artists/{id} id": [artist], "/api/admin/artists/{id} id": [artist],
            "/api/venues/{id} id": [venue], "/api/admin/venues/{id} id": [venue],
            "/api/admin/venues/{id}/halls id": [venue], "/api/admin/halls/{id} id": [hall],
            "/api/admin/mails/{id} id": [mail], "/api/admin/mails/{id}/retry id": [mail],
            "/api/admin/payments/{id} id": [payment["id"]],
            "/api/admin/payments/{id}/refund id": [payment["id"]],
            "/api/admin/payments/{id}/refunds/{refundId}/close id": [payment["id"]],
            "/api/admin/reservations/{id} id": [reservation],
            "/api/admin/reservations/{id}/cancel id": [reservation],
            "/api/reservations/{id} id": [reservation, listed],
            "/api/reservations/{id}/cancel id": [listed],
            "/api/reservations/{id}/refund-preview id": [reservation],
            "/api/reservations/{id}/seats id": [reservation],
            "/api/seats/reservation/{id} id": [reservation],
            "/api/transfers/{id} id": [transfer["transfer"]["id"]],
            "/api/transfers/{id}/cancel id": [transfer["transfer"]["id"]],
        });
        let all = self.ids.as_object_mut().context("an object")?;
        all.extend(writings.as_object().context("an object")?.clone());
        for (parameter, ids) in [
            ("/api/admin/events/{id}/copy id", json!([seated, standing])),
            ("/api/admin/events/{id}/move-preview id", json!([seated, standing])),
            ("/api/admin/reservations/{id}/history id", json!([reservation, listed])),
            ("/api/admin/reservations/{id}/resend-mail id", json!([reservation])),
        ] {
            all.insert(parameter.to_owned(), ids);
        }
        Ok(())
    }

    /// A post with a comment, and news, on the board of an artist: their ids by parameter.
    fn write(&self, artist: &str) -> Result<Value> {
        let writing = json!({ "artistId": artist, "title": "글", "content": "내용" });
        let mut news = None;
        eventually("the community knows the artist", || {
            let reply = self.ask(Some(UserRole::Admin), "POST", "/api/news", &writing)?;
            news = (reply.status == 201).then_some(reply);
            Ok(news.is_some())
        })?;
        let news = news.context("news")?.json()?;
        let post = self.make(UserRole::User, "POST", "/api/community/posts", &writing)?;
        let post = text(&post["post"]["id"])?;
        let path = format!("/api/community/posts/{post}/comments");
        let comment = self.make(UserRole::User, "POST", &path, &json!({ "content": "댓글" }))?;
        let (comment, news) = (&comment["comment"]["id"], &news["news"]["id"]);
        Ok(json!({
            "commentId": [comment],
            "/api/community/posts/{id} id": [post],
            "/api/community/posts/{id}/comments id": [post],
            "/api/community/posts/{id}/reports id": [post],
            "/api/community/posts/{id}/comments/{commentId} id": [post],
            "/api/community/posts/{id}/comments/{commentId}/reports id": [post],
            "/api/admin/community/posts/{id}/status id": [post],
            "/api/admin/community/posts/{id}/pin id": [post],
            "/api/admin/community/comments/{id}/status id": [comment],
            "/api/news/{id} id": [news],
        }))
    }

    /// A seated event on sale, a standing one on sale, and one that may be cancelled and deleted.
    fn create_events(&self, hall: &str, venue: &str) -> Result<[String; 3]> {
        let times = |days: i64| {
            let day = jiff::SignedDuration::from_hours(24);
            let at = |days: i64| Clock::System.now() + day * i32::try_from(days).unwrap_or(0);
            let (starts_at, from, to) = (at(days + 30), at(days), at(days + 20));
            json!({ "startsAt": starts_at, "saleStartsAt": from, "saleEndsAt": to })
        };
        let seated = json!({ "title": "한강의 밤", "hallId": hall, "prices": { "R": 90_000 } });
        let types = json!([{ "name": "A", "price": 70_000, "total": 100 }]);
        let standing = json!({ "title": "클럽 나이트", "venueId": venue, "ticketTypes": types });
        let mut ids = Vec::new();
        for (body, days) in [(&seated, -1), (&standing, -1), (&standing, 5)] {
            let mut body = body.clone();
            for (name, time) in times(days).as_object().context("three times")? {
                body[name] = time.clone();
            }
            let event = self.make(UserRole::Organiser, "POST", "/api/admin/events", &body)?;
            let id = text(&event["event"]["id"])?;
            eventually("the event can be booked", || {
                let event = self.ask(None, "GET", &format!("/api/events/{id}"), &json!({}))?;
                Ok(event.json()?["event"]["inventoryReady"] == true)
            })?;
            ids.push(id);
        }
        ids.try_into().map_err(|_| anyhow::anyhow!("three events"))
    }

    /// The user is admitted to the sale of an event.
    fn enter(&mut self, event: &str) -> Result<()> {
        let (path, mut entry) = (format!("/api/queue/check/{event}"), None);
        eventually("the user is admitted", || {
            let told = self.ask(Some(UserRole::User), "POST", &path, &json!({}))?.json()?;
            entry = told["entryToken"].as_str().map(ToOwned::to_owned);
            Ok(entry.is_some())
        })?;
        self.entry_token = entry.context("a token")?;
        Ok(())
    }

    /// The id of a reservation of a seat, and its payment.
    fn buy(&mut self, event: &str, seat: u32) -> Result<(String, Value)> {
        self.enter(event)?;
        let body = json!({ "eventId": event, "seatIds": [seat] });
        let held = self.make(UserRole::User, "POST", "/api/seats/reserve", &body)?;
        let id = text(&held["reservation"]["id"])?;
        let body = json!({ "reservationId": id, "paymentMethod": "approve" });
        let paid = self.make(UserRole::User, "POST", "/api/payments/process", &body)?;
        // A purchase ends the slot, so the user enters again.
        self.enter(event)?;
        Ok((id, paid["payment"].clone()))
    }
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(ToOwned::to_owned).with_context(|| format!("{value} is not a text"))
}

/// Makes an administrator on the command line and logs in.
fn create_admin(installation: &Installation, port: u16) -> Result<String> {
    let mut create = installation.command(&["admin", "create", "--email", "boss@example.com"]);
    let mut create = create.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut stdin = create.stdin.take().context("its input is ours")?;
    stdin.write_all(format!("{PASSWORD}\n").as_bytes())?;
    drop(stdin);
    ensure!(create.wait()?.success(), "the administrator could not be made");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse()?);
    let body = format!(r#"{{"email":"boss@example.com","password":"{PASSWORD}"}}"#);
    let reply = request(port, "POST", "/api/auth/login", &headers, &body)?;
    ensure!(reply.status == 200, "{reply:?}");
    text(&reply.json()?["token"])
}
