#!/usr/bin/env python3
"""What we depend on: every licence is one that we may ship under, and everything that is declared is used.

Reads `cargo metadata` for the machine it runs on; needs nothing that cargo has not fetched for the build.
`--self-test` shows that the checks can fail.
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys

# Each allows what we do with it: shipping one binary, under Apache-2.0 or MIT, with the licences of its parts beside it.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "OpenSSL",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
}

# Packages that name no licence in their manifest and have one in a file: the file's digest, and what somebody read in it.
READ_BY_HAND = {
    # For tests alone (apollo-compiler).
    "jsonpath-rust": ("3476fd3314b213821c673ed2d9991dc4e044f9e7fbcbbd754f0635b8b644474a", "MIT"),
}

# Declared for what it switches on in another crate, and named nowhere in our code: the crate, and why.
USED_WITHOUT_A_NAME = {}


def allowed(expression):
    """Whether an SPDX expression leaves us a way: every part of AND and WITH, one part of OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def peek():
        return tokens[position] if position < len(tokens) else None

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def either():
        result = both()
        while peek() == "OR":
            take()
            other = both()
            result = result or other
        return result

    def both():
        result = one()
        while peek() in ("AND", "WITH"):
            take()
            other = one()
            result = result and other
        return result

    def one():
        if peek() is None:
            raise ValueError(f"`{expression}` is not a licence expression")
        if peek() == "(":
            take()
            result = either()
            if peek() != ")":
                raise ValueError(f"`{expression}` has no closing parenthesis")
            take()
            return result
        return take() in ALLOWED

    result = either()
    if peek() is not None:
        raise ValueError(f"`{expression}` goes on with `{peek()}`")
    return result


def licence_problems(packages):
    problems = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        licence = package.get("license") or read_by_hand(package)
        if not licence:
            problems.append(f"{name} names no licence (its file: {package.get('license_file')})")
            continue
        try:
            if not allowed(licence):
                problems.append(f"{name} is under `{licence}`, which is not in the list of .ci/dependencies.py")
        except ValueError as error:
            problems.append(f"{name}: {error}")
    return problems


def read_by_hand(package):
    digest, licence = READ_BY_HAND.get(package["name"], (None, None))
    if digest is None or not package.get("license_file"):
        return None
    file = pathlib.Path(package["manifest_path"]).parent / package["license_file"]
    return licence if hashlib.sha256(file.read_bytes()).hexdigest() == digest else None


def unused(dependencies, shipped, tests):
    """Names of declared dependencies that no code names. What only tests name must be declared for tests."""
    problems = []
    for dependency in dependencies:
        name = dependency.get("rename") or dependency["name"]
        if name in USED_WITHOUT_A_NAME:
            continue
        word = re.compile(rf"\b{re.escape(name.replace('-', '_'))}\b\s*(::|!|;|\{{|,)")
        in_src = bool(word.search(shipped))
        if dependency["kind"] == "dev":
            if not in_src and not word.search(tests):
                problems.append(f"the dev-dependency `{name}` is used nowhere")
        elif not in_src:
            where = "only by tests: declare it as a dev-dependency" if word.search(tests) else "nowhere"
            problems.append(f"the dependency `{name}` is used {where}")
    return problems


def text_of(*folders):
    files = (path for folder in folders for path in sorted(pathlib.Path(folder).rglob("*.rs")))
    lines = (line for path in files for line in path.read_text().splitlines())
    return "\n".join(line.split("//")[0] for line in lines)


def self_test():
    for expression in ("MIT", "MIT OR GPL-3.0", "(MIT OR GPL-3.0) AND ISC", "Apache-2.0 WITH LLVM-exception", "MIT/X"):
        assert allowed(expression), expression
    for expression in ("GPL-3.0", "MIT AND GPL-3.0", "(MIT AND AGPL-3.0) OR GPL-2.0", "mit"):
        assert not allowed(expression), expression
    for expression in ("", "MIT)", "(MIT", "MIT AND"):
        try:
            allowed(expression)
        except ValueError:
            continue
        raise AssertionError(expression)
    package = {"name": "a", "version": "1.0.0", "license": None, "license_file": "COPYING"}
    assert licence_problems([package]) == ["a 1.0.0 names no licence (its file: COPYING)"]
    named = [{"name": "some-crate", "kind": None}, {"name": "other", "kind": None}, {"name": "third", "kind": "dev"}]
    assert unused(named, "use some_crate::A;", "other::b();") == [
        "the dependency `other` is used only by tests: declare it as a dev-dependency",
        "the dev-dependency `third` is used nowhere",
    ]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True)).group(1)
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host]
    metadata = json.loads(subprocess.check_output(command))
    own = next(package for package in metadata["packages"] if package["source"] is None)
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    packages = [package for package in metadata["packages"] if package["id"] in used]
    problems = licence_problems(packages)
    problems += unused(own["dependencies"], text_of("src"), text_of("src", "tests", "benches"))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(packages)} packages, {len(own['dependencies'])} of them declared by us")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
