#!/usr/bin/env python3
"""Makes a bundle of many decisions out of a small one: python3 grow_bundle.py BUNDLE OUT DECISIONS.

The accounts of the small bundle, with all that they did, are there again and again under other ids. Everything is chained and signed
anew with a key made for it, whose set is OUT/../OUT.jwks.json: what verify.py recomputes then is as much as of a gateway's month."""
import base64, hashlib, json, os, re, sys
from nacl.signing import SigningKey

bundle, out, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
ID = re.compile(r"\b([a-z]{2,5}_[0-9a-hjkmnp-tv-z]{20})[0-9a-hjkmnp-tv-z]{6}\b")


def pack(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


key = SigningKey.generate()
jwk = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "grown", "x": pack(key.verify_key.encode())}


def sign(payload, kind):
    head = pack(canonical({"alg": "EdDSA", "typ": kind, "kid": "grown"}).encode())
    signed = f"{head}.{pack(payload.encode())}"
    return f"{signed}.{pack(key.sign(signed.encode()).signature)}"


def lines(name):
    with open(os.path.join(bundle, f"{name}.jsonl"), encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def write(name, rows):
    digest, count = hashlib.sha256(), 0
    with open(os.path.join(out, f"{name}.jsonl"), "wb") as file:
        for row in rows:
            data = f"{row}\n".encode()
            file.write(data)
            digest.update(data)
            count += 1
    return {"lines": count, "sha256": digest.hexdigest()}


def copies(rows):
    for copy in range(times):
        for row in rows:
            yield ID.sub(lambda found: f"{found[1]}{copy:06d}", row)


def decisions():
    sequence, previous = manifest["chain"]["first"] - 1, manifest["chain"]["previous"]
    for row in copies(lines("decisions")):
        sequence += 1
        content = json.loads(row)["content"]
        previous = hashlib.sha256((previous + content).encode()).hexdigest()
        said = json.loads(content)
        if isinstance(said["facts"], dict):
            said["facts"].pop("found", None)
        said.update(iss=manifest["iss"], contentHash=hashlib.sha256(content.encode()).hexdigest())
        receipt = sign(canonical(said), "bursar-decision+jwt")
        yield json.dumps({"sequence": sequence, "hash": previous, "content": content, "receipt": receipt})
    manifest["chain"].update(last=sequence, head=previous)


def balances():
    own = [row for row in lines("balances") if ID.search(row)]
    yield from copies(own)
    for row in map(json.loads, (row for row in lines("balances") if not ID.search(row))):
        yield json.dumps({**row, **{end: str(int(row[end]) * times) for end in ("opening", "closing")}})


with open(os.path.join(bundle, "manifest.jws"), encoding="utf-8") as file:
    body = file.read().split(".")[1]
manifest = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
times = -(-wanted // len(lines("decisions")))
os.makedirs(out)
files = {"decisions.jsonl": write("decisions", decisions()), "balances.jsonl": write("balances", balances()),
         # Anchored heads are of the chain that has not grown.
         "policies.jsonl": write("policies", lines("policies")), "anchors.jsonl": write("anchors", [])}
for name in ("spends", "usage", "postings"):
    files[f"{name}.jsonl"] = write(name, copies(lines(name)))
manifest.update(files=files, jwks={"keys": [jwk]})
with open(os.path.join(out, "manifest.jws"), "w", encoding="utf-8") as file:
    file.write(sign(canonical(manifest), "bursar-books+jws"))
with open(f"{os.path.normpath(out)}.jwks.json", "w", encoding="utf-8") as file:
    json.dump({"keys": [jwk]}, file)
