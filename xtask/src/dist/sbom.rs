//! What the binary is made of, as `CycloneDX` 1.6: every crate with its version, licence and checksum, and which needs which.
//! The same sources give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::process;
use crate::test::cargo;

const ROOT: &str = "godex";

pub(super) fn write(target: &str, path: &Path) -> Result<()> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target]);
    let metadata: Value = serde_json::from_str(&process::output(&mut metadata)?)?;
    let lock = fs::read_to_string(crate::root().join("Cargo.lock"))?;
    let bom = bom(&metadata, &checksums(&lock))?;
    Ok(fs::write(path, format!("{bom:#}\n"))?)
}

/// By name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let mut sums = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let read = |name: &str| package.split_once(&format!("\n{name} = \""))?.1.split('"').next();
        if let (Some(name), Some(version), Some(sum)) = (read("name"), read("version"), read("checksum")) {
            sums.insert((name, version), sum);
        }
    }
    sums
}

fn bom(metadata: &Value, sums: &BTreeMap<(&str, &str), &str>) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node["id"]), node)).collect();
    let root = packages.values().find(|package| package["name"] == ROOT).context("no package godex")?;
    let root = text(&root["id"]);
    // Whatever is compiled for it; what only its tests need is not.
    let mut needs: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut next = vec![root.as_str()];
    while let Some(id) = next.pop() {
        if needs.contains_key(id) {
            continue;
        }
        let node = nodes.get(id).context("a package that is not resolved")?;
        let used =
            list(&node["deps"]).into_iter().filter(|dep| list(&dep["dep_kinds"]).iter().any(|k| k["kind"] != "dev"));
        let used: BTreeSet<String> = used.map(|dep| text(&dep["pkg"])).collect();
        for dep in &used {
            next.push(nodes.get_key_value(dep).context("a package that is not resolved")?.0);
        }
        needs.insert(id, used);
    }
    let reference = |id: &str| packages.get(id).map(purl).unwrap_or_default();
    let component = |id: &&str| packages.get(*id).map(|package| component(package, sums));
    let mut components: Vec<Value> = needs.keys().filter(|id| **id != root).filter_map(component).collect();
    components.sort_by_key(|component| text(&component["bom-ref"]));
    let depends = |(id, used): (&&str, &BTreeSet<String>)| {
        let mut used: Vec<String> = used.iter().map(|id| reference(id)).collect();
        used.sort();
        json!({"ref": reference(id), "dependsOn": used})
    };
    let mut dependencies: Vec<Value> = needs.iter().map(depends).collect();
    dependencies.sort_by_key(|entry| text(&entry["ref"]));
    let mut subject = packages.get(&root).map(|package| component_of(package, "application", sums)).unwrap_or_default();
    subject["description"] = packages.get(&root).map(|package| package["description"].clone()).unwrap_or_default();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, sums: &BTreeMap<(&str, &str), &str>) -> Value {
    component_of(package, "library", sums)
}

fn component_of(package: &Value, kind: &str, sums: &BTreeMap<(&str, &str), &str>) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut component = json!({
        "type": kind,
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // An older way to say "or".
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(sum) = sums.get(&(name.as_str(), version.as_str())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]).replace('+', "%2B"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_in_it_and_what_tests_need_is_not() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0+x", "license": "MIT/Apache-2.0"});
        let dep = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("godex"), package("a"), package("b"), package("made"), package("tested")],
            "resolve": {"nodes": [
                {"id": "godex", "deps": [dep("a", Value::Null), dep("tested", json!("dev")), dep("made", json!("build"))]},
                {"id": "a", "deps": [dep("b", Value::Null)]},
                {"id": "b", "deps": [dep("a", json!("dev"))]},
                {"id": "made", "deps": []},
                {"id": "tested", "deps": []},
            ]},
        });
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0+x\"\nchecksum = \"abc\"\n";
        let bom = bom(&metadata, &checksums(lock)).unwrap();
        let names: Vec<&str> =
            bom["components"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "made"]);
        assert_eq!(bom["components"][0]["hashes"][0]["content"], "abc");
        assert_eq!(bom["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bom["components"][0]["purl"], "pkg:cargo/a@1.0.0%2Bx");
        assert_eq!(bom["dependencies"][3], json!({"ref": "pkg:cargo/made@1.0.0%2Bx", "dependsOn": []}));
        assert_eq!(bom["metadata"]["component"]["type"], "application");
    }
}
