/**
 * Pauses inside the money functions. A throw-away database gets each PL/pgSQL function again, with a call of `sim_pause` after
 * every statement and condition that touches data. Only sessions named `stepped_N` wait there: at lock (7002, N * 10_000_000 + k)
 * for their k-th pause, which the conductor holds; lock (7003, place) tells where. May import nothing of the product.
 */
import type pg from 'pg'

export const PAUSE_CLASS = 7002
export const PLACE_CLASS = 7003
/** Pauses of one session before its numbers would reach those of the next. */
const MAX_PAUSES = 10_000_000

/** Functions that only tell others of a change, which no money depends on. */
const untouched = /^(event_|events_|webhook_|owner_mail_|refuse_change)/

/** A text of a function and the text that replaces it. The text must occur exactly once. */
export interface Edit {
  readonly routine: string
  readonly from: string
  readonly to: string
}

export interface Pauses {
  /** A place as `function:line`, by the number that `sim_pause` gets. Zero is between two statements of a task. */
  readonly nameOf: (place: number) => string
  /** Changes functions, pauses included. @returns a function that restores them. */
  readonly edit: (edits: readonly Edit[]) => Promise<() => Promise<void>>
}

interface Routine {
  readonly name: string
  readonly head: string
  readonly body: string
  readonly tail: string
}

/** First lock of a session's pauses. */
export function firstPause(session: number): number {
  return session * MAX_PAUSES
}

/** Name of a session's connection, and of the sequence of its pauses. */
export function sessionName(session: number): string {
  return `stepped_${session}`
}

/** Writes the pauses into a database. @param sessions how many sessions may be stepped. */
export async function installPauses(client: pg.Client, sessions: number): Promise<Pauses> {
  for (let session = 0; session < sessions; session += 1)
    await client.query(`create sequence ${sessionName(session)}`)
  await client.query(`create function sim_pause(p_place int) returns boolean language plpgsql as $$
    declare
      v_name text := current_setting('application_name');
      v_lock int;
    begin
      if v_name like 'stepped\\__' then
        v_lock := right(v_name, 1)::int * ${MAX_PAUSES} + nextval(v_name::regclass)::int;
        perform pg_advisory_lock_shared(${PLACE_CLASS}, p_place);
        perform pg_advisory_lock(${PAUSE_CLASS}, v_lock), pg_advisory_unlock(${PAUSE_CLASS}, v_lock);
        perform pg_advisory_unlock_shared(${PLACE_CLASS}, p_place);
      end if;
      return true;
    end $$`)
  const routines = await readRoutines(client)
  const calls = await readCalls(client)
  const places: string[] = ['between statements']
  const replace = async ({ name, head, body, tail }: Routine): Promise<void> => {
    const paused = insertPauses(body, calls, (line) => places.push(`${name}:${line}`) - 1)
    await client.query(`${head}${paused}${tail}`)
  }
  for (const routine of routines.values()) await replace(routine)
  return {
    nameOf: (place) => places[place] ?? `place ${place}`,
    edit: async (edits) => {
      const edited = new Map<string, Routine>()
      for (const edit of edits) {
        const routine = edited.get(edit.routine) ?? routines.get(edit.routine)
        if (routine === undefined) throw new Error(`there is no money function ${edit.routine}`)
        edited.set(edit.routine, { ...routine, body: replaceOnce(routine.body, edit) })
      }
      for (const routine of edited.values()) await replace(routine)
      return async () => {
        for (const name of edited.keys()) {
          const routine = routines.get(name)
          if (routine !== undefined) await replace(routine)
        }
      }
    },
  }
}

function replaceOnce(body: string, { routine, from, to }: Edit): string {
  const parts = body.split(from)
  if (parts.length !== 2) throw new Error(`${routine} has ${parts.length - 1} times: ${from}`)
  return parts.join(to)
}

/** A stable function sees what its caller's statement sees: a pause inside would show nothing more. */
async function readRoutines(client: pg.Client): Promise<ReadonlyMap<string, Routine>> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select p.proname as name, pg_get_functiondef(p.oid) as definition
    from pg_proc p join pg_language l on l.oid = p.prolang
    where p.pronamespace = 'public'::regnamespace and l.lanname = 'plpgsql' and p.provolatile = 'v' and p.proname <> 'sim_pause'
    order by p.proname`,
  )
  return new Map(
    rows
      .filter(({ name }) => !untouched.test(name))
      .map(({ name, definition }) => {
        const quote = '$function$'
        const [head = '', body = '', tail = ''] = definition.split(quote)
        return [name, { name, head: head + quote, body, tail: quote + tail }]
      }),
  )
}

/** Matches a call of any function that reads or writes. */
async function readCalls(client: pg.Client): Promise<RegExp> {
  const { rows } = await client.query<{ name: string }>(
    `select distinct proname as name from pg_proc where pronamespace = 'public'::regnamespace and provolatile <> 'i'`,
  )
  return new RegExp(`\\b(${rows.map(({ name }) => name).join('|')})\\s*\\(`, 'i')
}

const touching = /\b(select|insert|update|delete|perform)\b/i

/** First words of statements whose THEN starts another statement. */
const conditional = new Set(['if', 'elsif', 'when', 'exception'])

/** First words of statements after which nothing is reached. */
const leaving = new Set(['return', 'exit', 'continue', 'raise'])

/** A word, a parenthesis or a semicolon of PL/pgSQL; comments and texts are passed over. */
const token = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"[^"]*"|[a-z_][a-z_0-9.$]*|[()[\];]/gi

/**
 * Inserts pauses into the body of a function: after each statement that touches data, and on both ways after such a condition.
 * They leave FOUND and the row count as they are, which PERFORM would not.
 * @param calls matches calls of functions that touch data. @param addPlace numbers a pause, by its line.
 */
function insertPauses(body: string, calls: RegExp, addPlace: (line: number) => number): string {
  /** For each open IF and loop: whether its conditions or its query touch data. */
  const open: boolean[] = []
  let [written, copied] = ['', 0]
  /** The words of the statement so far, at its own level. */
  let [start, words]: [number, string[]] = [0, []]
  let [isDeclaring, nesting, cases] = [true, 0, 0]
  for (const { 0: found, index } of body.matchAll(token)) {
    const word = found.toLowerCase()
    const end = index + found.length
    if (/^(--|\/\*|'|")/.test(word) || (isDeclaring && word !== 'begin')) continue
    if (word === '(' || word === '[') nesting += 1
    if (word === ')' || word === ']') nesting -= 1
    if (nesting > 0) continue
    words.push(word)
    const [first = '', second = ''] = words
    const isFirst = words.length === 1
    if (!isFirst && first !== 'end') {
      if (word === 'case') cases += 1
      if (word === 'end') cases -= 1
    }
    if (cases > 0) continue
    const text = body.slice(start, end)
    const isTouching = touching.test(text) || calls.test(text)
    let isPause = false
    if (isDeclaring || (isFirst && word === 'begin')) isDeclaring = false
    else if (isFirst && word === 'declare') isDeclaring = true
    else if (isFirst && word === 'else') isPause = open.at(-1) === true
    else if (word === 'then' && conditional.has(first)) {
      isPause = isTouching
      if (first === 'if') open.push(isTouching)
      if (first === 'elsif') open.push(open.pop() === true || isTouching)
    } else if (word === 'loop' && first !== 'end') {
      isPause = isTouching
      open.push(isTouching)
    } else if (word === ';' && first === 'end') isPause = second !== ';' && open.pop() === true
    else if (word === ';') isPause = isTouching && !leaving.has(first)
    else continue
    if (isPause) {
      const line = body.slice(0, index).split('\n').length
      written += `${body.slice(copied, end)} if sim_pause(${addPlace(line)}) then end if;`
      copied = end
    }
    start = end
    words = []
  }
  return written + body.slice(copied)
}
