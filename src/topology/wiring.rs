//! Who refers to whom in a topology, and whether that can work: known before anything starts.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::{ChildSpec, child_ref::Label};
use crate::{Error, Result};

/// A name that a child can need: a [`ChildRef`](crate::ChildRef) or a
/// [`MemberRef`](crate::MemberRef).
pub trait Reference: sealed::Named + Clone + Send + Sync + 'static {}

impl<R: sealed::Named + Clone + Send + Sync + 'static> Reference for R {}

pub(super) mod sealed {
    use super::Label;

    /// What has a label.
    pub trait Named {
        /// The label.
        fn label(&self) -> &Label;

        /// Whether somebody is there right now.
        fn is_up(&self) -> bool;
    }
}

/// What a child is to others, and others to it.
#[derive(Clone, Default)]
pub(super) struct Wiring {
    /// The name it bears, where it has one that others can refer to.
    pub(super) places: Option<Label>,
    /// The child that its deliveries go to.
    pub(super) handler: Option<Label>,
    pub(super) needs: Vec<Need>,
    /// Of a topology.
    pub(super) children: Vec<ChildSpec>,
}

/// A child that has to be up before another starts.
#[derive(Clone)]
pub(super) struct Need {
    label: Label,
    is_up: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Need {
    pub(super) fn new<R: Reference>(reference: &R) -> Self {
        let (label, reference) = (reference.label().clone(), reference.clone());
        Self {
            label,
            is_up: Arc::new(move || reference.is_up()),
        }
    }
}

/// A child of the plan, with its path. Their order is that of the start.
struct Node<'a> {
    path: String,
    wiring: &'a Wiring,
}

/// Why one child comes before another.
#[derive(Clone, Copy)]
enum Why {
    Needs,
    DeliversTo,
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Needs => "needs",
            Self::DeliversTo => "delivers to",
        })
    }
}

/// Checks the children of the topology at `path`, and everything below them.
///
/// # Errors
/// Says what to change.
pub(super) fn check(path: &str, children: &[ChildSpec]) -> Result<()> {
    let mut nodes = Vec::new();
    collect(path, children, &mut nodes)?;
    placed_once(&nodes)?;
    known(&nodes)?;
    if let Some(cycle) = (0..nodes.len()).find_map(|from| cycle(&nodes, from)) {
        return Err(Error::invalid(format!(
            "children wait for each other: {cycle}"
        )));
    }
    in_order(&nodes)
}

/// The names that a child and everything below it bear.
pub(super) fn labels(child: &ChildSpec) -> Vec<Label> {
    let below = child.wiring.children.iter().flat_map(labels);
    child.wiring.places.iter().cloned().chain(below).collect()
}

fn collect<'a>(path: &str, children: &'a [ChildSpec], nodes: &mut Vec<Node<'a>>) -> Result<()> {
    let mut names = BTreeSet::new();
    for child in children {
        let name = &*child.name;
        if name.is_empty() || name.contains('/') {
            return Err(Error::invalid(format!(
                "{path}: a child's name is not empty and has no /, but one is {name:?}"
            )));
        }
        if !names.insert(name) {
            return Err(Error::invalid(format!(
                "{path}: two children are named {name}"
            )));
        }
        let path = format!("{path}/{name}");
        nodes.push(Node {
            path: path.clone(),
            wiring: &child.wiring,
        });
        collect(&path, &child.wiring.children, nodes)?;
    }
    Ok(())
}

fn placed_once(nodes: &[Node<'_>]) -> Result<()> {
    for (at, node) in nodes.iter().enumerate() {
        let Some(label) = &node.wiring.places else {
            continue;
        };
        if let Some(first) = find(nodes, label).filter(|first| *first < at) {
            let other = nodes.get(first).map_or("", |first| &first.path);
            return Err(Error::invalid(format!(
                "{other} and {} have the same reference {}: one reference stands for one child",
                node.path, label.name
            )));
        }
    }
    Ok(())
}

/// Whoever is referred to is there, or will be.
fn known(nodes: &[Node<'_>]) -> Result<()> {
    for Node { path, wiring } in nodes {
        if let Some(label) = &wiring.handler
            && !label.is_placed()
        {
            return Err(Error::invalid(format!(
                "{path}: its handler is the child {}, which is in no topology: add {}",
                label.name,
                label.how_to_add()
            )));
        }
        for Need { label, is_up } in &wiring.needs {
            if find(nodes, label).is_none() && !is_up() {
                return Err(Error::invalid(format!(
                    "{path} needs {}, which is in no topology that runs: add {} before it",
                    label.name,
                    label.how_to_add()
                )));
            }
        }
    }
    Ok(())
}

/// What is needed is started earlier.
fn in_order(nodes: &[Node<'_>]) -> Result<()> {
    for (at, Node { path, wiring }) in nodes.iter().enumerate() {
        let mut needed = wiring
            .needs
            .iter()
            .filter_map(|need| find(nodes, &need.label));
        let late = needed.find(|needed| *needed >= at);
        if let Some(Node { path: late, .. }) = late.and_then(|late| nodes.get(late)) {
            return Err(Error::invalid(format!(
                "{path} needs {late}, which is started after it: move {late} before {path}"
            )));
        }
    }
    Ok(())
}

/// A way from a child back to itself, spelt out.
fn cycle(nodes: &[Node<'_>], from: usize) -> Option<String> {
    let mut ways = vec![(from, name(nodes, from))];
    let mut seen = BTreeSet::new();
    while let Some((at, way)) = ways.pop() {
        for (why, next) in edges(nodes, at) {
            let way = format!("{way} {why} {}", name(nodes, next));
            if next == from {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push((next, way));
            }
        }
    }
    None
}

fn edges(nodes: &[Node<'_>], at: usize) -> Vec<(Why, usize)> {
    let Some(Node { wiring, .. }) = nodes.get(at) else {
        return Vec::new();
    };
    let needs = wiring.needs.iter().map(|need| (Why::Needs, &need.label));
    let handler = wiring.handler.iter().map(|label| (Why::DeliversTo, label));
    needs
        .chain(handler)
        .filter_map(|(why, label)| Some((why, find(nodes, label)?)))
        .collect()
}

/// The child that bears this name: the first, if there are more.
fn find(nodes: &[Node<'_>], label: &Label) -> Option<usize> {
    let bears = |node: &Node<'_>| node.wiring.places.as_ref().is_some_and(|own| own.is(label));
    nodes.iter().position(bears)
}

fn name(nodes: &[Node<'_>], at: usize) -> String {
    nodes
        .get(at)
        .map(|node| node.path.clone())
        .unwrap_or_default()
}
