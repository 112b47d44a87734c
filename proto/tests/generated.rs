//! The committed code is what the `.proto` files generate, without a `protoc`.
//!
//! After a change of the `.proto` files, `UPDATE=1 cargo test -p rocketmq-proto` writes it anew.

use std::{fs, path::Path};

const FILE: &str = "apache.rocketmq.v2.rs";

fn generate(into: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(["apache/rocketmq/v2/service.proto"], [root])
        .expect("the .proto files compile");
    let mut config = tonic_prost_build::Config::new();
    config.bytes(["."]);
    tonic_prost_build::configure()
        .out_dir(into)
        .build_client(true)
        .build_server(true)
        .server_mod_attribute("apache.rocketmq.v2", "#[cfg(feature = \"server\")]")
        .compile_fds_with_config(descriptors, config)
        .expect("code is generated");
}

#[test]
fn committed_code_is_what_the_proto_files_generate() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    fs::create_dir_all(&scratch).expect("a scratch folder");
    generate(&scratch);
    let fresh = fs::read_to_string(scratch.join(FILE)).expect("generated code");
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(FILE);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&committed, &fresh).expect("the generated code is written");
    }
    let current = fs::read_to_string(&committed).unwrap_or_default();
    assert!(
        current == fresh,
        "run UPDATE=1 cargo test -p rocketmq-proto"
    );
}
