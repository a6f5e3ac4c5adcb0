#!/usr/bin/env python3
"""Recomputes a bundle of Bursar's books: python3 verify.py BUNDLE [--jwks FILE] [--rpc CHAIN=URL --token CHAIN:ASSET=ADDRESS].
Needs Python 3.9 and the package "PyNaCl". It shares no code with the gateway; README.md has the format."""
import argparse, binascii, datetime, functools, gc, hashlib, json, multiprocessing, os, sys, urllib.request
from collections import defaultdict
from decimal import Decimal
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

FILES = ["decisions", "spends", "usage", "policies", "postings", "balances", "anchors"]
BUDGETS = {"dailyBudget": "day", "weeklyBudget": "week", "monthlyBudget": "month", "totalBudget": "life"}
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
faults, keys, heads = [], {}, {}  # keys: kid -> public key; heads: text of a header -> what it says
def fault(where, what):
    faults.append(f"{where}: {what}")
def unpack(text):
    return binascii.a2b_base64(text.replace("-", "+").replace("_", "/") + "==")
def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
def open_jws(jws, kind):
    """The payload of a compact JWS (RFC 7515) with Ed25519 (RFC 8037), or None."""
    try:
        head, body, signature = jws.split(".")
        header = heads[head] if head in heads else heads.setdefault(head, json.loads(unpack(head)))
        if header["alg"] != "EdDSA" or header["typ"] != kind:
            return None
        keys[header["kid"]].verify(f"{head}.{body}".encode(), unpack(signature))
        return unpack(body).decode()
    except (ValueError, KeyError, BadSignatureError):
        return None
def load_keys(jwks):
    keys.update({k["kid"]: VerifyKey(unpack(k["x"])) for k in jwks["keys"]})
def rows(directory, name):
    with open(os.path.join(directory, f"{name}.jsonl"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, json.loads(line)
            except ValueError:
                fault(f"{name} {number}", "is no JSON")
def check_files(directory, named):
    if sorted(named) != sorted(f"{name}.jsonl" for name in FILES):
        fault("manifest", "does not name the files of this format")
    for name, said in named.items():
        digest, count = hashlib.sha256(), 0
        with open(os.path.join(directory, os.path.basename(name)), "rb") as file:
            for part in iter(lambda: file.read(1 << 20), b""):
                count += part.count(b"\n")
                digest.update(part)
        if (digest.hexdigest(), count) != (said["sha256"], said["lines"]):
            fault(name, f"is not the file that was signed: {count} lines for {said['lines']}")

def check_receipts(batch):
    """Reads decisions, and whether each receipt is signed and says the same. Runs in worker processes."""
    wrong, read = [], []
    for sequence, content, receipt in batch:
        payload = open_jws(receipt, "bursar-decision+jwt")
        said, decision = json.loads(payload) if payload else {}, json.loads(content)
        facts = decision["facts"] if isinstance(decision["facts"], dict) else {}
        facts.pop("found", None)
        usd, named = facts.get("usdMicros"), [decision[name] for name in ("at", "accountId", "keyId", "verdict", "policyHash")]
        to = facts.get("counterparty") if decision["operation"] == "wallets.transfer" else None
        sent = to and (to.lower(), facts.get("chain"), facts.get("asset"), Decimal(facts.get("amount")))
        read.append((decision["decisionId"], (*named, None if usd is None else int(usd), decision["violations"] == [], facts.get("category"), sent)))
        said.pop("iss", None)  # the gateway that sealed it, of maybe several
        if said != {**decision, "contentHash": sha256(content)}:
            wrong.append(sequence)
    return wrong, read

def read_decisions(directory, manifest, pool, hashes):
    """Checks the chain, and has the workers read the decisions and their receipts meanwhile. Fills in the hashes that are asked for."""
    chain, batches, batch = manifest["chain"], [], []
    sequence, previous = (chain["first"] - 1, chain["previous"]) if chain else (0, "")
    hashes.update({sequence: previous} if sequence in hashes else {})
    for number, row in rows(directory, "decisions"):
        if row["sequence"] != sequence + 1:
            fault(f"decisions {number}", f"is sequence {row['sequence']} where {sequence + 1} is due")
        sequence = row["sequence"]
        if sha256(previous + row["content"]) != row["hash"]:
            fault(f"decisions {number}", "does not have the hash of its content and of the decision before it")
        previous = row["hash"]
        if sequence in hashes:
            hashes[sequence] = previous
        batch.append((sequence, row["content"], row["receipt"]))
        if len(batch) == 2000:
            batches, batch = [*batches, pool.apply_async(check_receipts, (batch,))], []
    batches.append(pool.apply_async(check_receipts, (batch,)))
    if chain and (sequence, previous) != (chain["last"], chain["head"]):
        fault("decisions", "do not end at the head that was signed")
    return batches

def read_spends(directory):
    """What became of each allowed decision, by its id."""
    spends = {}
    for number, s in rows(directory, "spends"):
        s.update(line=number, counted=int(s["counted"]), units=int(s["units"]), taken=int(s["taken"]))
        if s["decision"] in spends:
            fault(f"spends {number}", "is there twice")
        spends[s["decision"]] = s
    return spends
def is_sent(s, scales, payee, chain, asset, amount):
    """Whether a spend is the transfer that was decided: all of it if settled. An asset of a chain has the same decimals each time."""
    scale = (Decimal(s["units"]) / amount).normalize()
    return (s["asset"] == asset and [s["source"], s["held"]] == [f"{s['account']}:{chain}:{part}" for part in ("available", "held")]
            and (s["payee"] or payee).lower() == payee and s["chain"] in (None, chain)
            and (s["status"] != "settled" or scale.as_tuple().digits == (1,) and scales.setdefault((chain, asset), scale) == scale))

def check_spends(manifest, batches, spends):
    """Each spend is of an allowed decision. Returns the decisions of the period by id, as the workers read them."""
    decisions, scales = {}, {}
    for wrong, read in (batch.get() for batch in batches):
        decisions.update((id, d) for id, d in read if manifest["from"] <= d[0] < manifest["to"])
        for sequence in wrong:
            fault(f"decision {sequence}", "has no receipt by these keys that says what it says")
    for id, s in spends.items():
        where, d = f"spends {s['line']}", decisions.get(id)
        if d is None or d[3] != "allow":
            fault(where, f"{id} was not allowed in this period")
        elif d[1] != s["account"] or d[2] != (s["keys"][-1] if s["keys"] else None):
            fault(where, "names another account or key than its decision")
        elif s["day"] != d[0][:10]:
            fault(where, f"counts on {s['day']}, not on the day of its decision")
        elif not 0 <= s["counted"] <= (s["status"] != "released" and d[5] or 0) or not 0 <= s["taken"] <= s["units"]:
            fault(where, "counts or takes more than was decided")
        elif d[8] and not is_sent(s, scales, *d[8]):
            fault(where, "sends other money than was decided, or to somebody else")
        if s["status"] not in ("reserved", "settled", "released") or (s["status"] == "reserved") != (s["ended"] is None):
            fault(where, f"has the status {s['status']} and ended at {s['ended']}")
    for missing in (id for id, d in decisions.items() if d[3] == "allow" and id not in spends):
        fault("spends", f"{missing} was allowed, and what became of it is missing")
    return decisions

def read_postings(directory, manifest, spends):
    """Re-adds the ledger. Returns what each spend held, what left that by destination, and the spends that were released."""
    moved, seen, left, released, holds = defaultdict(int), {}, defaultdict(lambda: defaultdict(int)), set(), defaultdict(int)
    for number, p in rows(directory, "postings"):
        where, units = f"postings {number}", int(p["units"])
        if p["ordinal"] != seen.get(p["transaction"], 0) + 1:
            fault(where, "is not the next posting of its transaction")
        seen[p["transaction"]] = p["ordinal"]
        if units <= 0 or p["source"] == p["destination"]:
            fault(where, "moves nothing")
        if not manifest["from"] <= p["at"] < manifest["to"]:
            fault(where, "is not of this period")
        moved[p["source"], p["asset"]] -= units
        moved[p["destination"], p["asset"]] += units
        spend = spends.get(p["reference"])
        released.update([p["reference"]] if p["kind"] == "release" else [])
        if spend and p["asset"] == spend["asset"] and p["destination"] in (spend["held"], p["kind"] == "hold" and p["destination"]):
            holds[p["reference"], p["destination"] == spend["held"]] += units
        if spend and p["source"] == spend["held"] and p["kind"] in ("settle", "take", "release"):
            left[p["reference"]][p["destination"]] += units
    totals = defaultdict(lambda: [0, 0])
    for number, b in rows(directory, "balances"):
        opening, closing, name = int(b["opening"]), int(b["closing"]), (b["account"], b["asset"])
        if opening + moved.pop(name, 0) != closing:
            fault(f"balances {number}", f"{name[0]} does not close with its opening and its postings")
        if b["account"].startswith("acct_") and min(opening, closing) < 0:
            fault(f"balances {number}", f"{name[0]} is below zero")
        totals[b["asset"]] = [sum(pair) for pair in zip(totals[b["asset"]], (opening, closing))]
    for asset in (asset for asset, sums in totals.items() if any(sums)):
        fault("balances", f"{asset} does not add up to zero")
    for account, asset in moved:
        fault("balances", f"{account} has postings in {asset} and no balance")
    return left, released, holds

def check_holds(decisions, spends, left, holds, manifest):
    """Each spend held its money, which left as the spend ended. A card's money stays held for what it promised."""
    for id, s in ((id, s) for id, s in spends.items() if s["source"] not in (None, s["held"])):
        gone, back = sum(left[id].values()), left[id].get(s["source"], 0)
        # What was held in the wallet first, and more of it, was carried to the purse that pays.
        held = holds[id, True] or (s["units"] if holds[id, False] >= s["units"] else 0)
        if held < s["units"]:
            fault(f"spend {id}", f"holds {s['units']} of which the postings tell {held}")
        elif s["status"] == "released" and gone != back:
            fault(f"spend {id}", "was released and paid")
        elif id in decisions and decisions[id][7] == "card" and gone == 0:
            continue
        elif s["ended"] and s["ended"] < manifest["to"] and gone != held:
            fault(f"spend {id}", f"ended, and {held - gone} of its {s['asset']} are where they were")
        elif gone - back > s["taken"] or (s["status"] == "reserved" and gone != s["taken"]):
            fault(f"spend {id}", "paid other money than was taken")

@functools.cache
def starts_of(day):
    """First days of the spans that a day lies in."""
    date = datetime.date.fromisoformat(day)
    return {"day": day, "week": (date - datetime.timedelta(date.weekday())).isoformat(), "month": day[:7], "life": ""}
def check_budgets(directory, manifest, decisions, spends, released):
    """Counters are what the decisions add up to, and no spend went beyond its key's policy."""
    policies, counted = {}, defaultdict(lambda: [0, 0])
    for number, row in rows(directory, "policies"):
        policies[row["hash"]] = json.loads(row["policy"])
        if sha256(row["policy"]) != row["hash"]:
            fault(f"policies {number}", "does not have its hash")
    for s in spends.values():
        for key in s["keys"]:
            counted[key, s["day"]] = [counted[key, s["day"]][0] + s["counted"], counted[key, s["day"]][1] + (s["status"] != "released")]
    first, last, used = manifest["from"][:10], manifest["to"][:10], defaultdict(lambda: [0, 0])
    for number, u in rows(directory, "usage"):
        said, added = [int(u["counted"]), u["count"]], counted.pop((u["key"], u["day"]), [0, 0])
        added = [added[0] + int(u["unasked"]["counted"]), added[1] + u["unasked"]["count"]]
        if u["day"] < first:
            for span, start in starts_of(u["day"]).items():
                used[u["key"], span, start] = [sum(pair) for pair in zip(used[u["key"], span, start], said)]
        # If later decisions are left out, the counters of the last day know of them.
        elif said != added and not (manifest["isCut"] and u["day"] == last and said >= added):
            fault(f"usage {number}", f"{u['key']} used {said} on {u['day']}; its decisions add up to {added}")
    for (key, day), added in counted.items():
        if added != [0, 0]:
            fault("usage", f"{key} has spends on {day} and no counter")
    for id in sorted(spends, key=lambda one: (decisions[one][0], one) if one in decisions else ("", one)):
        s, d, spans = spends[id], decisions.get(id), starts_of(spends[id]["day"])
        if d and d[2] and d[6]:
            policy = policies.get(d[4])
            if policy is None:
                fault(f"decision {id}", "was made by a policy that is missing")
            elif d[5] is not None:
                most = policy.get("perTransaction", {}).get("max")
                if most is not None and d[5] > Decimal(most) * 1_000_000:
                    fault(f"decision {id}", "allowed more than a transaction may have")
                for name, span in BUDGETS.items():
                    limit = policy.get(name)
                    value, count = used[d[2], span, spans[span]]
                    if limit and s["status"] != "released" and (
                            value + s["counted"] > Decimal(limit["max"]) * 1_000_000 or count >= limit.get("maxCount", 10**9)):
                        fault(f"decision {id}", f"went beyond {name}")
        # What was released and paid after all is counted, though others were allowed meanwhile.
        if s["status"] != "released" and not (id in released and s["taken"] == s["units"]):
            for key in s["keys"]:
                for span, start in spans.items():
                    used[key, span, start] = [used[key, span, start][0] + s["counted"], used[key, span, start][1] + 1]

def ask(node, method, *params):
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(node, call, {"content-type": "application/json"}), timeout=30)).get("result")
def check_anchors(anchors, hashes, nodes):
    """The head that was written on a chain each day is in these books; with a node, the sponsor wrote it there within two days."""
    for where, a in ((f"anchors {number}", a) for number, a in anchors):
        if hashes[a["sequence"]] != a["hash"]:
            fault(where, f"{a['day']} was anchored with another hash of sequence {a['sequence']} than these books have")
        if a["chain"] in nodes:
            sent = ask(nodes[a["chain"]], "eth_getTransactionByHash", a["transaction"]) or {}
            block = sent.get("blockNumber") and ask(nodes[a["chain"]], "eth_getBlockByNumber", sent["blockNumber"], False)
            data = "0x" + b"bursar-anchor/1".hex() + a["hash"] + f"{a['sequence']:016x}"
            due = datetime.datetime.fromisoformat(a["day"] + "T00:00:00+00:00").timestamp() + 3 * 86400
            if not block or sent["input"] != data or {sent["from"], sent["to"]} != {a["sender"].lower()} or int(block["timestamp"], 16) > due:
                fault(where, f"{a['transaction']} on {a['chain']} does not say so, or said it more than two days after {a['day']}")
    return sum(a["chain"] in nodes for _, a in anchors)

def check_evidence(spends, left, nodes, tokens):
    """What left for a chain names its transaction; with a node, its Transfer of the token is there, one for each spend."""
    taken = set()
    for id, s in ((id, s) for id, s in spends.items() if s["chain"] in nodes):
        paid = sum(units for place, units in left[id].items() if place == f"external:{s['chain']}")
        receipt = paid and ask(nodes[s["chain"]], "eth_getTransactionReceipt", s["transaction"]) or {"logs": []}
        free = {(s["chain"], log["transactionHash"], log["logIndex"]) for log in receipt["logs"]
                if log["address"].lower() == tokens.get(f"{s['chain']}:{s['asset']}", "").lower() and log["topics"][:1] == [TRANSFER] and len(log["topics"]) == 3
                and int(log["data"], 16) == paid and log["topics"][2][-40:] == s["payee"][-40:].lower()} - taken
        taken.update(sorted(free)[:1])
        if paid and not free:
            fault(f"spend {id}", f"{s['transaction']} on {s['chain']} does not pay {paid} {s['asset']} to {s['payee']}, or another spend")
    return len(taken)

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("--jwks", help="keys of the gateway, from /.well-known/jwks.json, kept from an earlier day")
    for name, value, use in (("--rpc", "CHAIN=URL", "node that confirms evidence"), ("--token", "CHAIN:ASSET=ADDRESS", "contract of an asset")):
        parser.add_argument(name, action="append", default=[], metavar=value, help=use)
    options = parser.parse_args()
    gc.disable()  # millions of rows stay, and none refers to itself
    jws = open(os.path.join(options.bundle, "manifest.jws"), encoding="utf-8").read().strip()
    manifest = json.loads(unpack(jws.split(".")[1]))
    jwks = json.load(open(options.jwks, encoding="utf-8")) if options.jwks else manifest["jwks"]
    load_keys(jwks)
    if open_jws(jws, "bursar-books+jws") is None or manifest["format"] != "bursar-books/1":
        sys.exit("manifest: is not signed by these keys")
    check_files(options.bundle, manifest["files"])
    anchors = list(rows(options.bundle, "anchors"))
    hashes = {a["sequence"]: None for _, a in anchors}
    with multiprocessing.Pool(initializer=load_keys, initargs=(jwks,)) as pool:
        batches, spends = read_decisions(options.bundle, manifest, pool, hashes), read_spends(options.bundle)
        left, released, holds = read_postings(options.bundle, manifest, spends)
        decisions = check_spends(manifest, batches, spends)
        check_holds(decisions, spends, left, holds, manifest)
        check_budgets(options.bundle, manifest, decisions, spends, released)
    nodes, tokens = (dict(pair.split("=", 1) for pair in pairs) for pairs in (options.rpc, options.token))
    confirmed = check_evidence(spends, left, nodes, tokens) + check_anchors(anchors, hashes, nodes)
    if faults:
        sys.exit("\n".join([*faults[:50], f"{len(faults)} faults"]))
    print(f"{manifest['iss']} from {manifest['from']} to {manifest['to']}: {len(decisions)} decisions, {len(spends)} spends, "
          f"{confirmed} confirmed on chain, {len(anchors)} days anchored{''.join(sorted({' by ' + a['sender'] for _, a in anchors}))}. All signatures, counters, holds and balances are as recomputed.")
    if not options.jwks:
        print("Verified with the keys in the bundle itself: give --jwks to be independent of them.", file=sys.stderr)

if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # a file is missing, cut or of another kind
        sys.exit("\n".join([*faults[:50], f"cannot read on: {type(error).__name__}: {error}"]))
