"""Edits a bundle at random and counts what the verifier finds: python3 edit_bundle.py BUNDLE EDITS OMISSIONS SEED.

Each bundle is verified twice: as it was signed, and as if whoever edited it had signed the new files too.
"""
import contextlib, importlib.util, io, json, os, random, shutil, sys, tempfile

bundle, edits, omissions, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
spec = importlib.util.spec_from_file_location("verify", "docs/verify/verify.py")
verify = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verify)
check_files = verify.check_files
names = [f"{name}.jsonl" for name in verify.FILES]
rng = random.Random(seed)


class Here:
    """Works in this process: a pool for each of a thousand bundles would take longer than the work."""

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def apply_async(self, work, arguments):
        outcome = work(*arguments)
        return type("Done", (), {"get": lambda self: outcome})()


verify.multiprocessing.Pool = Here


def is_found(directory):
    verify.faults.clear()
    verify.keys.clear()
    sys.argv = ["verify.py", directory]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            verify.main()
    except SystemExit as error:
        return error.code not in (None, 0)
    except Exception:
        # What cannot be read is refused too.
        return True
    return False


def change(value):
    """Another value of the same kind."""
    if isinstance(value, bool) or value is None:
        return "changed"
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 1000])
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return str(int(value) + rng.choice([-1, 1, 1000000]))
    if isinstance(value, str) and value:
        place = rng.randrange(len(value))
        return value[:place] + rng.choice([c for c in "0123456789abcdef" if c != value[place]]) + value[place + 1:]
    return "changed"


def edit(directory):
    """Changes one member of one line. @returns what was changed."""
    name = rng.choice([name for name in names if os.path.getsize(os.path.join(directory, name))])
    path = os.path.join(directory, name)
    lines = open(path, encoding="utf-8").read().splitlines()
    place = rng.randrange(len(lines))
    row = json.loads(lines[place])
    member = rng.choice(sorted(row))
    row[member] = change(row[member])
    lines[place] = json.dumps(row, separators=(",", ":"), ensure_ascii=False)
    open(path, "w", encoding="utf-8").write("".join(f"{line}\n" for line in lines))
    whose = " of a person" if row.get("keys") == [] else ""
    return f"{name} {member}{whose}"


def omit(directory):
    """Leaves out one line. @returns of which file."""
    name = rng.choice([name for name in names if os.path.getsize(os.path.join(directory, name))])
    path = os.path.join(directory, name)
    lines = open(path, encoding="utf-8").read().splitlines()
    del lines[rng.randrange(len(lines))]
    open(path, "w", encoding="utf-8").write("".join(f"{line}\n" for line in lines))
    return f"{name} omission"


if is_found(bundle):
    sys.exit(f"the bundle itself: {verify.faults[:3]}")
missed, resigned, recomputed = [], {}, 0
for work in [edit] * edits + [omit] * omissions:
    with tempfile.TemporaryDirectory() as parent:
        copy = shutil.copytree(bundle, os.path.join(parent, "books"))
        what = work(copy)
        verify.check_files = check_files
        if not is_found(copy):
            missed.append(what)
        verify.check_files = lambda directory, named: None
        if is_found(copy):
            recomputed += 1
        else:
            resigned[what] = resigned.get(what, 0) + 1


def rewrite(directory, name, change_rows):
    path = os.path.join(directory, f"{name}.jsonl")
    rows = change_rows([json.loads(line) for line in open(path, encoding="utf-8")])
    open(path, "w", encoding="utf-8").write("".join(f"{json.dumps(row)}\n" for row in rows))


def contradictions():
    """Changes of all that is not signed itself, which add up among themselves: the transfer that was decided is another."""
    decided = {}
    for line in open(os.path.join(bundle, "decisions.jsonl"), encoding="utf-8"):
        content = json.loads(json.loads(line)["content"])
        decided[content["decisionId"]] = content
    spends = [json.loads(line) for line in open(os.path.join(bundle, "spends.jsonl"), encoding="utf-8")]
    sent = next(s for s in spends if decided[s["decision"]]["operation"] == "wallets.transfer" and s["status"] == "settled")
    more = 80 * int(sent["units"])

    def set_members(**members):
        return lambda directory: rewrite(directory, "spends", lambda rows: [
            {**row, **members} if row["decision"] == sent["decision"] else row for row in rows])

    def pay_more(directory):
        units = str(int(sent["units"]) + more)
        set_members(units=units, taken=units)(directory)
        rewrite(directory, "postings", lambda rows: [
            {**row, "units": units} if row["reference"] == sent["decision"] else row for row in rows])
        changes = {sent["source"]: -more, f"external:{sent['chain']}": more}
        rewrite(directory, "balances", lambda rows: [
            {**row, "closing": str(int(row["closing"]) + changes.get(row["account"], 0))} if row["asset"] == sent["asset"] else row
            for row in rows])

    return {
        "pays more": pay_more,
        "pays somebody else": set_members(payee="0x" + "1" * 40),
        "pays on another chain": set_members(chain="elsewhere"),
        "holds nothing": set_members(source=None, held=None),
        "has not ended": set_members(ended=None),
        "is still reserved": set_members(status="reserved"),
    }


unfound = []
for what, work in contradictions().items():
    with tempfile.TemporaryDirectory() as parent:
        copy = shutil.copytree(bundle, os.path.join(parent, "books"))
        work(copy)
        if not is_found(copy):
            unfound.append(what)
print(json.dumps({"unfound": unfound, "missed": missed, "recomputed": recomputed, "of": edits + omissions, "resigned": resigned}))
