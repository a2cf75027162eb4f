//! The SQS client. It calls through [`Outbound`], as every call to a foreign server does.

use std::time::Duration;

use aws_sdk_sqs::config::http::{HttpRequest, HttpResponse};
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, HttpClient, Region, RuntimeComponents};
use aws_sdk_sqs::{Client, Config, config};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::result::ConnectorError;
use bytes::Bytes;
use urr_kernel::Secret;
use urr_outbound::{Outbound, OutboundError, OutboundRequest};

/// Longer than a read waits for a message.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Where the queue is, and who may use it.
#[derive(Clone, Debug)]
pub struct SqsOptions {
    pub queue_url: String,
    pub region: String,
    /// The address of a server that is not Amazon's.
    pub endpoint: Option<String>,
    pub access_key_id: String,
    pub secret_access_key: Secret,
}

/// One queue. Clones share its connections.
#[derive(Clone, Debug)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    pub fn new(options: &SqsOptions, outbound: Outbound) -> SqsQueue {
        let SqsOptions { queue_url, region, endpoint, access_key_id, secret_access_key } = options;
        let credentials =
            Credentials::new(access_key_id, secret_access_key.expose(), None, None, "urr");
        let mut config = Config::builder();
        config.set_endpoint_url(endpoint.clone());
        let config = config
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(region.clone()))
            .credentials_provider(credentials)
            .http_client(OutboundConnector(outbound))
            // The callers decide about retries and deadlines.
            .retry_config(config::retry::RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .build();
        SqsQueue { client: Client::from_conf(config), url: queue_url.clone() }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

/// [`Outbound`] as the HTTP client of the SDK.
#[derive(Clone, Debug)]
struct OutboundConnector(Outbound);

impl HttpClient for OutboundConnector {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for OutboundConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let outbound = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = to_outbound(request)?;
            let answer = outbound.send(request).await.map_err(|error| match error {
                OutboundError::Timeout => ConnectorError::timeout(error.into()),
                OutboundError::RefusedAddress(_) => ConnectorError::user(error.into()),
                error => ConnectorError::io(error.into()),
            })?;
            let mut response = hyper::Response::new(answer.body.into());
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            HttpResponse::try_from(response)
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

fn to_outbound(request: HttpRequest) -> Result<OutboundRequest, ConnectorError> {
    let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
    let (head, body) = request.into_parts();
    let body = body.bytes().ok_or_else(|| ConnectorError::user("a body that streams".into()))?;
    Ok(OutboundRequest {
        method: head.method,
        url: head.uri.to_string(),
        headers: head.headers,
        body: Bytes::copy_from_slice(body),
        timeout: CALL_TIMEOUT,
    })
}
