"""A corpus of code that no number here was tuned on: packages of PyPI and npm, and sources of Debian 12.

    python tests/benchmarks/corpus.py FOLDER

FOLDER/python and FOLDER/java then hold the folders test and validation, one folder a package. Whole files are taken, by
the SHA-256 of their paths, as long as a package has no more than MOST_FUNCTIONS functions. Every fourth package is for
validation. Java needs npm and Debian's apt-get and dpkg-source; nothing of a package is installed or run. Then:

    codesyntax build --source FOLDER/python --config python --config python_pairs --output fresh
    codesyntax build --source FOLDER/java --config java --config java_pairs --output fresh-java
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources.files import definitions

MOST_FUNCTIONS = 40

LARGEST_FILE = 60_000
"""Bytes: larger files are often made by programs."""

PYPI = """
agate==1.14.2 arrow==1.4.0 astroid==4.3.4 asteval==1.0.10 boltons==26.2.0 cachetools==8.0.0
cerberus==1.3.8 configobj==5.0.9 construct==2.10.70 dateparser==1.5.0 deepdiff==9.1.0
docutils==0.23 dulwich==1.2.21 fabric==3.2.3 feedparser==6.0.14 fs==2.4.16 geopy==2.5.0
gunicorn==27.0.1 humanize==4.17.0 icalendar==7.3.0 invoke==3.0.3 lark==1.3.1 luigi==3.8.1
mako==1.4.3 marshmallow==4.4.0 mido==1.3.3 mistune==3.4.0 mpmath==1.4.1 nltk==3.10.4
openpyxl==3.1.5 paramiko==5.1.0 parso==0.8.7 passlib==1.7.4 petl==1.7.30 pycparser==3.12
pyphen==0.18.1 pypdf==7.1.0 rdflib==7.6.0 reportlab==5.1.0 schematics==2.1.1 scrapy==2.19.0
simpy==4.1.2 sqlparse==0.6.1 svgwrite==1.4.3 tablib==3.10.0 textdistance==4.6.3 tinydb==4.9.0
transitions==0.9.3 trimesh==5.2.0 urwid==5.0.1 watchdog==7.1.0 webob==1.8.11 whoosh==2.7.4
xlsxwriter==3.3.1 yapf==0.43.0 zeep==4.3.3
""".split()

DEBIAN = """
cglib=3.3.0-1 commons-io=2.11.0-2 commons-pool2=2.11.1-1 hikaricp=2.7.9-1
httpcomponents-core=4.4.16-1 jackson-dataformat-xml=2.14.0-1 javapoet=1.13.0-1 jcommander=1.71-4
jline3=3.3.1-3 jsoup=1.15.3-1 junit4=4.13.2-3 libcommons-codec-java=1.15-1
libcommons-collections4-java=4.2-1 libcommons-net-java=3.9.0-1 libthumbnailator-java=0.4.19-1
picocli=4.6.2-2
""".split()

NPM = """
react-native-svg@15.15.5 react-native-device-info@15.0.2 react-native-maps@1.29.11
react-native-blob-util@0.25.1 react-native-view-shot@6.0.1 react-native-share@12.3.1
react-native-fs@2.20.0 react-native-image-picker@8.2.1 react-native-pdf@7.0.5
react-native-image-crop-picker@0.52.0 react-native-inappbrowser-reborn@3.7.1
react-native-document-picker@9.3.1 react-native-date-picker@5.0.13 react-native-sound@0.13.0
react-native-ble-plx@3.5.1 react-native-appsflyer@6.18.0 react-native-app-auth@8.4.1
react-native-branch@7.0.0 react-native-onesignal@5.5.13 react-native-geolocation-service@5.3.1
react-native-biometrics@3.0.1 react-native-fbsdk-next@13.4.3 react-native-webview@16.0.0
cordova-plugin-camera@8.0.0 cordova-plugin-file@8.1.3 cordova-plugin-file-transfer@2.0.0
cordova-plugin-inappbrowser@7.0.0 cordova-plugin-media@7.0.0 cordova-plugin-contacts@3.0.1
cordova-plugin-local-notification@1.2.3 cordova-plugin-media-capture@6.0.0
cordova-sqlite-storage@7.0.0 cordova-plugin-ionic-webview@5.0.1 cordova-android@15.1.0
@capacitor/android@8.5.2 @capacitor/camera@8.2.4 @capacitor/filesystem@8.1.3
@capacitor/local-notifications@8.3.1 @capacitor/push-notifications@8.1.2 react-native-tts@4.1.1
react-native-wifi-reborn@4.13.6 react-native-contacts@8.0.10 react-native-push-notification@8.1.1
react-native-camera@4.2.1 @react-native-community/datetimepicker@9.2.1
@react-native-community/geolocation@3.4.0 @react-native-firebase/messaging@26.4.0
@react-native-firebase/database@24.1.1 react-native-ble-manager@12.5.3
react-native-bluetooth-classic@0.10.12 react-native-nfc-manager@3.17.2
react-native-callkeep@4.3.16 phonegap-plugin-push@2.3.0 phonegap-plugin-barcodescanner@8.1.0
cordova-plugin-ble-central@2.0.0 cordova-plugin-nativestorage@2.3.2
cordova-plugin-bluetooth-serial@0.4.7 cordova-plugin-googlemaps@2.7.1
""".split()

Packages = Iterator[tuple[str, Path]]
"""The name and the folder of each package."""


def wheels(folder: Path) -> Packages:
    for requirement in PYPI:
        name, _, _ = requirement.partition("==")
        package = folder / name
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
        ]
        if run([*command, "-d", str(package), requirement]):
            for wheel in package.glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(package)
            yield name, package


def debian_sources(folder: Path) -> Packages:
    """From where apt takes this system's packages."""
    options = source_options(folder)
    run(["apt-get", *options, "update", "-q"])
    for package in DEBIAN:
        name, _, _ = package.partition("=")
        downloads = folder / name
        downloads.mkdir()
        if run(["apt-get", *options, "source", "-q", "--download-only", package], downloads):
            (description,) = downloads.glob("*.dsc")
            run(["dpkg-source", "--no-check", "-x", description.name, "tree"], downloads)
            yield name, downloads / "tree"


def npm_packages(folder: Path) -> Packages:
    for package in NPM:
        name, _, _ = package.rpartition("@")
        downloads = folder / name.replace("/", "-")
        downloads.mkdir()
        if run(["npm", "pack", "--silent", package], downloads):
            for archive in downloads.glob("*.tgz"):
                with tarfile.open(archive) as files:
                    files.extractall(downloads, filter="data")
            yield downloads.name, downloads


def java_packages(folder: Path) -> Packages:
    yield from debian_sources(folder)
    yield from npm_packages(folder)


def source_options(folder: Path) -> list[str]:
    """Options of apt-get that read sources of packages, and leave the system's lists as they are."""
    parts, lists = folder / "apt" / "parts", folder / "apt" / "lists"
    parts.mkdir(parents=True)
    (lists / "partial").mkdir(parents=True)
    for entry in Path("/etc/apt/sources.list.d").glob("*.sources"):
        text = entry.read_text().replace("Types: deb\n", "Types: deb-src\n")
        (parts / entry.name).write_text(text)
    lines = Path("/etc/apt/sources.list")
    if lines.exists():
        (parts / "system.list").write_text(lines.read_text().replace("deb ", "deb-src "))
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": parts,
        "Dir::State::Lists": lists,
        "Dir::Cache": folder / "apt",
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def run(command: list[str], folder: Path | None = None) -> bool:
    """True if a command succeeds; what it says of its failure is printed."""
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if result.returncode:
        print(f"{' '.join(command[-2:])}: {result.stderr.strip()[-200:]}", file=sys.stderr)
    return result.returncode == 0


def copy_files(package: Path, target: Path, language: str, suffix: str) -> int:
    """Copy whole files with at most MOST_FUNCTIONS functions together; the number of functions."""
    files = [
        file for file in package.rglob(f"*{suffix}") if file.is_file() and not file.is_symlink()
    ]
    files.sort(
        key=lambda file: hashlib.sha256(file.relative_to(package).as_posix().encode()).digest()
    )
    functions = 0
    for file in files:
        path = file.relative_to(package)
        if "test" in path.as_posix().lower() or file.stat().st_size > LARGEST_FILE:
            continue
        text = file.read_text("utf-8", "replace")
        number = len(definitions(text, language, Skips(), str(path)))
        if 0 < number <= MOST_FUNCTIONS - functions:
            functions += number
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(text, "utf-8")
    return functions


def main(folder: Path) -> None:
    for language, suffix, packages in (("python", ".py", wheels), ("java", ".java", java_packages)):
        with tempfile.TemporaryDirectory() as downloads:
            for number, (name, package) in enumerate(packages(Path(downloads))):
                split = "validation" if number % 4 == 3 else "test"
                functions = copy_files(package, folder / language / split / name, language, suffix)
                print(f"{language} {split} {name}: {functions} functions", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
