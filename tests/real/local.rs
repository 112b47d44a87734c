//! What only a server in local mode does.

use crate::raw::Raw;
use crate::support::RealServer;

#[tokio::test]
async fn local_mode_refuses_a_group_that_nobody_listed() {
    let mut raw = Raw::connect(&RealServer::from_env(), "unlisted").await;
    let refused = raw.subscribe("normal-1", "unlisted").await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().contains("group not found"), "{refused}");
}
