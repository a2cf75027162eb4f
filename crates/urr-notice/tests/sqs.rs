//! Notices on a queue that speaks SQS, sent and read by our own programs (Q6, K-11).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Arc, LazyLock, Mutex};

use aws_sdk_sqs::types::QueueAttributeName;
use axum::Router;
use axum::extract::State;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use urr_kernel::{Secret, Timestamp, Uuid};
use urr_notice::{
    NoticeMessage, NoticeMetrics, NoticePublisher, NoticeWorker, SqsOptions, SqsQueue,
};
use urr_outbound::Outbound;
use urr_queue::Notices;
use urr_room::Admission;
use urr_service::Metrics;
use urr_test::servers::{self, Server, SqsServer};

const EVENT: Uuid = Uuid::from_u128(0xe);

/// One server for all cases: it takes more than a second to start. None: it is not installed here,
/// which with `CI=true` is a failure.
static SERVER: LazyLock<Option<SqsServer>> =
    LazyLock::new(|| servers::available(Server::Sqs).unwrap().then(|| SqsServer::start().unwrap()));

struct House {
    queue: SqsQueue,
    aside: SqsQueue,
}

impl House {
    /// A queue of its own for a case, and one for what cannot be read.
    async fn open(name: &str) -> Option<House> {
        let server = SERVER.as_ref()?;
        let aside = create(server, &format!("{name}-aside.fifo"), &[]).await;
        let arn = format!("arn:aws:sqs:elasticmq:000000000000:{name}-aside.fifo");
        let redrive = format!("{{\"deadLetterTargetArn\":\"{arn}\",\"maxReceiveCount\":\"3\"}}");
        let more = [
            (QueueAttributeName::VisibilityTimeout, "0"),
            (QueueAttributeName::RedrivePolicy, redrive.as_str()),
        ];
        let queue = create(server, &format!("{name}.fifo"), &more).await;
        Some(House { queue, aside })
    }

    async fn read_all(&self) -> Vec<NoticeMessage> {
        let worker = NoticeWorker::new(self.queue.clone());
        let mut all = Vec::new();
        loop {
            let read = worker.read(0).await.unwrap();
            if read.done.is_empty() && read.unreadable == 0 {
                return all;
            }
            all.extend(read.done);
        }
    }
}

fn queue_at(endpoint: &str, url: &str) -> SqsQueue {
    let options = SqsOptions {
        queue_url: url.to_owned(),
        region: "ap-northeast-2".to_owned(),
        endpoint: Some(endpoint.to_owned()),
        access_key_id: "x".to_owned(),
        secret_access_key: Secret::new("y"),
    };
    SqsQueue::new(&options, Outbound::to_own_servers())
}

async fn create(server: &SqsServer, name: &str, more: &[(QueueAttributeName, &str)]) -> SqsQueue {
    let admin = queue_at(server.endpoint(), "");
    let mut create = admin.client().create_queue().queue_name(name);
    create = create.attributes(QueueAttributeName::FifoQueue, "true");
    for (key, value) in more {
        create = create.attributes(key.clone(), *value);
    }
    let created = create.send().await.unwrap();
    queue_at(server.endpoint(), created.queue_url().unwrap())
}

struct Posting {
    notices: Notices,
    metrics: NoticeMetrics,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Posting {
    fn start(queue: &SqsQueue, buffered_max: usize) -> Posting {
        let (notices, receiver) = Notices::buffered(buffered_max);
        let (metrics, stop) = (NoticeMetrics::default(), CancellationToken::new());
        let post =
            NoticePublisher { queue: queue.clone(), notices: receiver, metrics: metrics.clone() };
        let running = tokio::spawn(post.run(stop.clone()));
        Posting { notices, metrics, stop, running }
    }

    /// Stops it. What was put before is sent, if the queue takes it.
    async fn end(self) -> NoticeMetrics {
        self.stop.cancel();
        self.running.await.unwrap();
        self.metrics
    }
}

fn admitted(user: u128, slot: u128) -> Admission {
    Admission { user_id: Uuid::from_u128(user), slot_id: Uuid::from_u128(slot) }
}

fn user_of(message: &NoticeMessage) -> u128 {
    let NoticeMessage::Admitted { user_id, event_id: EVENT, .. } = message else {
        panic!("{message:?}")
    };
    user_id.as_u128()
}

#[tokio::test]
async fn notices_arrive_in_the_order_of_admission() {
    let Some(house) = House::open("order").await else { return };
    let posting = Posting::start(&house.queue, 1_000);
    let all: Vec<Admission> = (1..=95).map(|number| admitted(number, 1_000 + number)).collect();
    posting.notices.admitted(EVENT, &all, Timestamp::UNIX_EPOCH);
    let notices = posting.notices.clone();
    let metrics = posting.end().await;
    assert_eq!((metrics.sent(), notices.dropped()), (95, 0));
    let users: Vec<u128> = house.read_all().await.iter().map(user_of).collect();
    assert_eq!(users, (1..=95).collect::<Vec<u128>>());
    assert_eq!(house.read_all().await, [], "what was read is off the queue");
}

#[tokio::test]
async fn k_11_being_let_in_again_is_told_again_and_a_repetition_is_not() {
    let Some(house) = House::open("again").await else { return };
    let posting = Posting::start(&house.queue, 10);
    let both = [admitted(1, 10), admitted(1, 10), admitted(1, 11)];
    posting.notices.admitted(EVENT, &both, Timestamp::UNIX_EPOCH);
    posting.end().await;
    let read = house.read_all().await;
    let slots = read.iter().map(|message| match message {
        NoticeMessage::Admitted { slot_id, .. } => slot_id.as_u128(),
        NoticeMessage::Unknown => panic!("{message:?}"),
    });
    assert_eq!(slots.collect::<Vec<_>>(), [10, 11]);
}

#[tokio::test]
async fn k_11_a_dead_queue_costs_notices_that_are_counted_and_nothing_else() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let queue = queue_at(&endpoint, &format!("{endpoint}/000000000000/none.fifo"));
    let posting = Posting::start(&queue, 20);
    let all: Vec<Admission> = (1..=500).map(|number| admitted(number, number)).collect();
    posting.notices.admitted(EVENT, &all, Timestamp::UNIX_EPOCH);
    let notices = posting.notices.clone();
    let overflow = notices.dropped();
    assert!(overflow >= 480 - 10, "the buffer holds twenty and the post ten: {overflow}");
    let metrics = posting.end().await;
    assert_eq!(metrics.sent(), 0);
    assert_eq!(notices.dropped(), 500, "one counter has all that were not sent");
}

/// A server that speaks SQS and refuses the third of the first batch once.
#[derive(Clone, Default)]
struct Moody(Arc<Mutex<Vec<Vec<u128>>>>);

impl Moody {
    async fn start() -> (Moody, String) {
        let moody = Moody::default();
        let router = Router::new().fallback(take_batch).with_state(moody.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (moody, endpoint)
    }
}

async fn take_batch(
    State(moody): State<Moody>,
    body: String,
) -> ([(&'static str, &'static str); 1], String) {
    let asked: Value = serde_json::from_str(&body).unwrap();
    let mut batches = moody.0.lock().unwrap();
    let is_first = batches.is_empty();
    let (mut taken, mut successful, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (index, entry) in asked["Entries"].as_array().unwrap().iter().enumerate() {
        let id = &entry["Id"];
        if is_first && index == 2 {
            failed.push(json!({"Id": id, "SenderFault": false, "Code": "InternalError"}));
            continue;
        }
        taken.push(user_of(&NoticeMessage::parse(entry["MessageBody"].as_str().unwrap()).unwrap()));
        successful.push(json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": ""}));
    }
    batches.push(taken);
    let answer = json!({ "Successful": successful, "Failed": failed });
    ([("content-type", "application/x-amz-json-1.0")], answer.to_string())
}

#[tokio::test]
async fn what_is_refused_for_a_moment_is_sent_before_anything_else() {
    let (moody, endpoint) = Moody::start().await;
    let queue = queue_at(&endpoint, &format!("{endpoint}/000000000000/moody.fifo"));
    let (notices, taken) = Notices::buffered(100);
    let all: Vec<Admission> = (1..=15).map(|number| admitted(number, number)).collect();
    notices.admitted(EVENT, &all, Timestamp::UNIX_EPOCH);
    let metrics = NoticeMetrics::default();
    let post = NoticePublisher { queue, notices: taken, metrics: metrics.clone() };
    let stop = CancellationToken::new();
    let posting = tokio::spawn(post.run(stop.clone()));
    urr_test::eventually("all are sent", async || (metrics.sent() == 15).then_some(())).await;
    stop.cancel();
    posting.await.unwrap();
    let batches = moody.0.lock().unwrap().clone();
    let [first, again, rest] = batches.as_slice() else { panic!("{batches:?}") };
    assert_eq!(*first, [1, 2, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(*again, [3]);
    assert_eq!(*rest, (11..=15).collect::<Vec<u128>>());
    assert_eq!(notices.dropped(), 0);
}

#[tokio::test]
async fn what_cannot_be_read_is_put_aside_and_an_unknown_action_is_passed_over() {
    let Some(house) = House::open("odd").await else { return };
    let bodies = [("1", "not JSON"), ("2", r#"{"action":"seat_reserve"}"#)];
    for (number, body) in bodies {
        let send = house.queue.client().send_message().queue_url(house.queue.url());
        let send = send.message_group_id(number).message_deduplication_id(number);
        send.message_body(body).send().await.unwrap();
    }
    assert_eq!(house.read_all().await, [NoticeMessage::Unknown]);
    let aside = house.aside.client().receive_message().queue_url(house.aside.url());
    let aside = aside.wait_time_seconds(5).send().await.unwrap();
    let bodies: Vec<_> = aside.messages().iter().filter_map(|message| message.body()).collect();
    assert_eq!(bodies, ["not JSON"]);
}

#[tokio::test]
async fn a_worker_reads_until_it_is_told_to_stop() {
    let Some(house) = House::open("worker").await else { return };
    let stop = CancellationToken::new();
    let worker = NoticeWorker::new(house.queue.clone());
    let metrics = Metrics::new();
    worker.register(&metrics);
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { worker.run(stop).await }
    });
    let posting = Posting::start(&house.queue, 10);
    posting.notices.admitted(EVENT, &[admitted(1, 1)], Timestamp::UNIX_EPOCH);
    posting.end().await;
    urr_test::eventually("the worker has counted it", async || {
        metrics.text().contains("urr_notices_read_total 1\n").then_some(())
    })
    .await;
    urr_test::eventually("the worker has read it", async || {
        let attributes = house
            .queue
            .client()
            .get_queue_attributes()
            .queue_url(house.queue.url())
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessages)
            .send()
            .await
            .unwrap();
        let count = attributes.attributes().unwrap();
        (count[&QueueAttributeName::ApproximateNumberOfMessages] == "0").then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap();
}
