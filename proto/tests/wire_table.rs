//! The compiled descriptors say what the wire table says: every field, enum value and method,
//! with number, type and label, and nothing beyond.

use std::{collections::BTreeSet, path::Path};

use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    MethodDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

const TABLE: &str = include_str!("wire.tsv");
const PACKAGE: &str = ".apache.rocketmq.v2.";

type Row = (String, String, String, String, String, String, String);

fn table() -> BTreeSet<Row> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let mut cells = line.split('\t').map(str::to_owned);
            let mut cell = || cells.next().unwrap_or_default();
            (cell(), cell(), cell(), cell(), cell(), cell(), cell())
        })
        .collect()
}

fn type_name(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => {
            let name = field.type_name();
            name.strip_prefix(PACKAGE)
                .unwrap_or(name.trim_start_matches('.'))
                .to_owned()
        }
        Type::String => "string".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Float => "float".to_owned(),
        other => format!("{other:?}"),
    }
}

fn field_row(file: &str, owner: &DescriptorProto, field: &FieldDescriptorProto) -> Row {
    let map = owner.nested_type.iter().any(|nested| {
        nested
            .options
            .as_ref()
            .is_some_and(|options| options.map_entry())
            && field
                .type_name()
                .ends_with(&format!(".{}.{}", owner.name(), nested.name()))
    });
    let label = if map {
        String::new()
    } else if field.proto3_optional() {
        "optional".to_owned()
    } else if let Some(index) = field.oneof_index {
        let index = usize::try_from(index).expect("an index");
        format!("oneof {}", owner.oneof_decl[index].name())
    } else if field.label() == Label::Repeated {
        "repeated".to_owned()
    } else {
        String::new()
    };
    let kind = if map {
        "map<string,string>".to_owned()
    } else {
        type_name(field)
    };
    (
        file.to_owned(),
        "field".to_owned(),
        owner.name().to_owned(),
        field.name().to_owned(),
        field.number().to_string(),
        kind,
        label,
    )
}

fn enum_rows(file: &str, owner: &str, item: &EnumDescriptorProto) -> Vec<Row> {
    item.value
        .iter()
        .map(|value| {
            (
                file.to_owned(),
                "enum".to_owned(),
                owner.to_owned(),
                value.name().to_owned(),
                value.number().to_string(),
                String::new(),
                String::new(),
            )
        })
        .collect()
}

fn method_row(file: &str, service: &str, method: &MethodDescriptorProto) -> Row {
    let short = |name: &str| name.strip_prefix(PACKAGE).unwrap_or(name).to_owned();
    let mut label = Vec::new();
    if method.client_streaming() {
        label.push("client-stream");
    }
    if method.server_streaming() {
        label.push("server-stream");
    }
    (
        file.to_owned(),
        "rpc".to_owned(),
        service.to_owned(),
        method.name().to_owned(),
        String::new(),
        format!(
            "{} -> {}",
            short(method.input_type()),
            short(method.output_type())
        ),
        label.join(" "),
    )
}

fn file_rows(file: &FileDescriptorProto) -> Vec<Row> {
    let name = file.name().rsplit('/').next().unwrap_or_default();
    let mut rows = Vec::new();
    for message in &file.message_type {
        rows.extend(
            message
                .field
                .iter()
                .map(|field| field_row(name, message, field)),
        );
        for nested in &message.enum_type {
            rows.extend(enum_rows(
                name,
                &format!("{}.{}", message.name(), nested.name()),
                nested,
            ));
        }
    }
    for item in &file.enum_type {
        rows.extend(enum_rows(name, item.name(), item));
    }
    for service in &file.service {
        rows.extend(
            service
                .method
                .iter()
                .map(|method| method_row(name, service.name(), method)),
        );
    }
    rows
}

fn compiled() -> BTreeSet<Row> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    protox::compile(["apache/rocketmq/v2/service.proto"], [root])
        .expect("the .proto files compile")
        .file
        .iter()
        .filter(|file| file.package() == "apache.rocketmq.v2")
        .flat_map(file_rows)
        .collect()
}

#[test]
fn every_row_of_the_table_is_compiled_and_nothing_else() {
    let (table, compiled) = (table(), compiled());
    assert!(
        table.len() > 300,
        "the table was read: {} rows",
        table.len()
    );
    let missing: Vec<_> = table.difference(&compiled).collect();
    let extra: Vec<_> = compiled.difference(&table).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing {missing:#?}\nextra {extra:#?}"
    );
}
