//! Running a case on both forms.

use std::future::Future;

use urr_test::app::{Form, TestApp};

pub fn run<F: Future<Output = ()>>(form: Form, case: impl FnOnce(TestApp) -> F) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        if let Some(app) = TestApp::start(form).await {
            case(app).await;
        }
    });
}

/// Declares cases that run on both forms: `on_both_forms! { async fn name(app: TestApp) { … } }`.
#[macro_export]
macro_rules! on_both_forms {
    ($($(#[$meta:meta])* async fn $name:ident($app:ident: TestApp) $body:block)*) => {
        $($(#[$meta])* async fn $name($app: urr_test::TestApp) $body)*
        mod embedded {
            $(#[test]
            fn $name() {
                $crate::fixture::run(urr_test::app::Form::Embedded, super::$name);
            })*
        }
        mod distributed {
            $(#[test]
            fn $name() {
                $crate::fixture::run(urr_test::app::Form::Distributed, super::$name);
            })*
        }
    };
}
