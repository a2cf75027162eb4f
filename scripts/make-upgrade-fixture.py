#!/usr/bin/env python3
"""Makes the data of a released version for the tests of upgrades.

    scripts/make-upgrade-fixture.py PROGRAM FILE                      # a data folder
    scripts/make-upgrade-fixture.py PROGRAM FILE --postgres URL       # an empty database, as its administrator

PROGRAM is the `urr` of that version. A small shop is opened with it: purchases, a cancelled one and a partly
cancelled one, a hold that nobody paid, a membership, a transfer, a post. When everything agrees, the tables
are written as SQL into FILE (.tar.gz): `NAME.sql` for each SQLite file, `postgres.sql` for the database.
The secrets are those of crates/urr/tests/program/process.rs, and protect nothing.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

ADMIN = ("boss@example.com", "a secret of the administrator")
PASSWORD = "a long enough secret"
FANS = 10
PATIENCE_SECONDS = 120
# A test of later years still sells these seats.
DATES = {"saleStartsAt": "2026-01-01T00:00:00Z", "saleEndsAt": "2089-12-31T00:00:00Z", "startsAt": "2090-01-01T00:00:00Z"}
SETTINGS = {
    "JWT_SECRET": "a secret of this test, for the log-ins of users",
    "INTERNAL_API_TOKEN": "a secret of this test, for the calls between services",
    "QUEUE_ENTRY_TOKEN_SECRET": "a secret of this test, for the waiting room",
    "URR_DATABASE_ROLE_SECRET": "a secret of this test, for the database roles",
    "URR_AUTH_DATA_KEY": "a secret of this test, for the data of users",
    "URR_SEATS_TICKET_SIGNING_KEY": "a secret of this test, for the tickets of users",
    "URR_DEMO_SEED": "false",
    "URR_AUTH_BOT_CHECK": "off",
    "PATH": os.environ["PATH"],
}


class Shop:
    """A running program."""

    def __init__(self, program, folder, database):
        self.program, self.folder = program, folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.settings = dict(SETTINGS)
        if database:
            self.settings["URR_DATABASE_URL"] = database

    def command(self, *words, secret=""):
        return subprocess.run(
            [self.program, *words], cwd=self.folder, env=self.settings, input=secret, capture_output=True, text=True, check=False
        )

    @contextlib.contextmanager
    def running(self):
        up = subprocess.Popen(
            [self.program, "up", "--port", str(self.port)], cwd=self.folder, env=self.settings, stdout=sys.stderr
        )
        try:
            until(lambda: self.ask("GET", "/health")[0] == 200)
            yield
        finally:
            up.send_signal(signal.SIGTERM)
            assert up.wait(60) == 0

    def ask(self, method, path, body=None, token=None, entry=None):
        """The status and the answer; 0 if there is none."""
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        if entry:
            headers["x-queue-entry-token"] = entry
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read() or b"null")
        except OSError:
            return 0, None

    def do(self, method, path, body=None, **who):
        status, answer = self.ask(method, path, body, **who)
        assert status in (200, 201), (method, path, status, answer)
        return answer

    def log_in(self, email, password):
        return self.do("POST", "/api/auth/login", {"email": email, "password": password})["token"]

    def register(self, email):
        terms = [{"type": kind, "version": "2026-11", "agreed": True} for kind in ("SERVICE", "PRIVACY")]
        body = {"email": email, "password": PASSWORD, "name": email.split("@")[0], "terms": terms}
        return self.do("POST", "/api/auth/register", body)["token"]

    def hold(self, token, event, seats):
        entry = until(lambda: self.do("POST", f"/api/queue/check/{event}", token=token).get("entryToken"))
        body = {"eventId": event, "seatIds": seats}
        return self.do("POST", "/api/seats/reserve", body, token=token, entry=entry)["reservation"]["id"]

    def pay(self, token, **what):
        paid = self.do("POST", "/api/payments/process", {"paymentMethod": "approve", **what}, token=token)
        assert paid["success"], paid


def until(is_so):
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends_at:
        answer = is_so()
        if answer:
            return answer
        time.sleep(0.1)
    raise TimeoutError(is_so)


def open_sale(shop, admin):
    """An artist, a hall of 200 seats and an event; gives the artist and the event."""
    artist = shop.do("POST", "/api/admin/artists", {"name": "Opera", "membershipPrice": 30000}, token=admin)["artist"]["id"]
    venue = shop.do("POST", "/api/admin/venues", {"name": "강변 홀", "address": "서울"}, token=admin)["venue"]["id"]
    grid = {"rows": 10, "seatsPerRow": 20, "gradeMapping": [{"grade": "R", "fromRow": 1, "toRow": 10}]}
    halls = f"/api/admin/venues/{venue}/halls"
    hall = shop.do("POST", halls, {"name": "대극장", "grid": grid}, token=admin)["hall"]["id"]
    event = {"title": "Opera Night", "artistId": artist, "hallId": hall, "prices": {"R": 90000}, **DATES}
    event = shop.do("POST", "/api/admin/events", event, token=admin)["event"]["id"]
    until(lambda: shop.do("GET", f"/api/events/{event}")["event"]["inventoryReady"])
    return artist, event


def sell(shop):
    assert shop.command("admin", "create", "--email", ADMIN[0], secret=ADMIN[1] + "\n").returncode == 0
    artist, event = open_sale(shop, shop.log_in(*ADMIN))
    fans = [shop.register(f"fan-{number}@example.com") for number in range(FANS)]
    bought = []
    for number, fan in enumerate(fans[:-1]):
        reservation = shop.hold(fan, event, [2 * number, 2 * number + 1])
        shop.pay(fan, reservationId=reservation)
        bought.append(reservation)
    # The last one never pays.
    shop.hold(fans[-1], event, [2 * FANS])
    shop.do("POST", f"/api/reservations/{bought[0]}/cancel", token=fans[0])
    tickets = shop.do("GET", f"/api/reservations/{bought[1]}", token=fans[1])["reservation"]["tickets"]
    some = {"ticketNumbers": [tickets[0]["number"]]}
    shop.do("POST", f"/api/reservations/{bought[1]}/cancel-tickets", some, token=fans[1])
    # Only members sell and buy tickets of an artist's event.
    for fan in (fans[0], fans[2], fans[3], fans[4]):
        membership = shop.do("POST", "/api/memberships/subscribe", {"artistId": artist}, token=fan)["membershipId"]
        shop.pay(fan, paymentType="membership", referenceId=membership)
    shop.do("POST", "/api/transfers", {"reservationId": bought[3]}, token=fans[3])
    transfer = shop.do("POST", "/api/transfers", {"reservationId": bought[4]}, token=fans[4])["transfer"]["id"]
    shop.pay(fans[0], paymentType="transfer", referenceId=transfer)
    post = {"artistId": artist, "title": "첫 공연", "content": "좋았어요"}
    shop.do("POST", "/api/community/posts", post, token=fans[2])


def agrees(shop):
    audit = shop.command("audit")
    print(audit.stdout, audit.stderr, file=sys.stderr)
    return audit.returncode == 0 and "under way: 0 messages, 0 payments" in audit.stdout


def dump_sqlite(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        return "\n".join(database.iterdump()) + "\n"


def dump_postgres(url):
    command = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=500", url]
    dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Commands of psql; the rest is SQL.
    lines = [line for line in dump.splitlines() if not line.startswith(("\\", "--"))]
    return "\n".join(line for line in lines if line) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", type=pathlib.Path)
    arguments.add_argument("file", type=pathlib.Path)
    arguments.add_argument("--postgres", metavar="URL")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(options.program.resolve(), folder, options.postgres)
        with shop.running():
            sell(shop)
            until(lambda: agrees(shop))
        data = pathlib.Path(folder) / "data"
        texts = {f"{path.stem}.sql": dump_sqlite(path) for path in sorted(data.glob("*.db"))}
    if options.postgres:
        texts["postgres.sql"] = dump_postgres(options.postgres)
    with tarfile.open(options.file, "w:gz") as archive:
        for name, text in sorted(texts.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    print(f"{options.file}: {options.file.stat().st_size} bytes, {', '.join(sorted(texts))}")


if __name__ == "__main__":
    main()
