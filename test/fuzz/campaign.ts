/** A fuzzing campaign: requests and tool calls against one gateway, judged, with each finding reduced. */
import fc from 'fast-check'
import type { Cast } from './cast.ts'
import { Memories } from './document.ts'
import { createJudge, type Judge } from './judge.ts'
import { openMcp } from './mcp.ts'
import { type Answer, send } from './send.ts'
import { listOperations, type Plan, plansFor, type Shot } from './shots.ts'

/** Size and seed. @property only restricts routes and tools to names that contain it. */
export interface Size {
  readonly seed: number
  readonly requests: number
  readonly calls: number
  readonly only: string | null
  /** Time limit in milliseconds; work beyond it is reported as skipped. */
  readonly withinMs: number
}

/** A finding. @property times how often it occurred. */
export interface Finding {
  readonly what: string
  readonly where: string
  readonly shot: Shot
  readonly answerText: string
  times: number
}

export interface Outcome {
  readonly sent: number
  readonly called: number
  /** Count of each status per operation, and of each code per tool. */
  readonly seen: ReadonlyMap<string, ReadonlyMap<string, number>>
  readonly findings: readonly Finding[]
  readonly slowestMs: number
}

/** Concurrent requests. */
const LANES = 8
/** Plans that are drawn at a time. */
const BATCH = 25
/** Requests that may be spent on reducing one finding. */
const SHRINKS = 40
/** Findings that are reduced. */
const MAX_REDUCED = 10

/** Runs a campaign. @param progress gets the current counts of requests and findings. */
export async function runCampaign(
  { origin, cast }: { readonly origin: string; readonly cast: Cast },
  size: Size,
  progress: (done: number, of: number, findings: number) => void,
): Promise<Outcome> {
  const memory = new Memories()
  const read = await send(origin, { method: 'GET', target: '/api/openapi.json', headers: {}, body: null })
  const { operations, problem } = listOperations(JSON.parse(read.text))
  const judge = createJudge(problem)
  const findings = new Map<string, Finding>()
  const seen = new Map<string, Map<string, number>>()
  const until = performance.now() + size.withinMs
  let slowestMs = 0
  let done = 0
  const steward = cast.judge()

  const fire = async (shot: Shot): Promise<Answer> => {
    const signed = await cast.credentials(shot.caller, shot)
    const answer = await send(origin, { ...shot, headers: { ...shot.headers, ...signed } }).catch(
      (error: unknown): Answer => ({ status: 0, headers: {}, text: String(error), ms: 0 }),
    )
    if ([401, 423].includes(answer.status) && cast.renew(shot.caller)) memory.forget(shot.caller)
    // A rail that stays off would hide everything behind it.
    if (shot.method === 'PUT' && shot.target.includes('/controls') && answer.status === 200)
      await steward.then((person) => person.send('PUT', shot.target, { enabled: true }))
    return answer
  }
  const note = (where: string, shot: Shot, answer: Answer, wrong: readonly string[]) => {
    slowestMs = Math.max(slowestMs, answer.ms)
    const counts = seen.get(where) ?? new Map<string, number>()
    const outcome = findOutcome(answer)
    seen.set(where, counts.set(outcome, (counts.get(outcome) ?? 0) + 1))
    for (const what of wrong) {
      const name = `${where} ${what.replaceAll(/\d+|[a-z]+_[a-z0-9]{26}/g, '#')}`
      const found = findings.get(name)
      if (found === undefined)
        findings.set(name, { what, where, shot, answerText: answer.text.slice(0, 600), times: 1 })
      else found.times += 1
    }
    if (answer.status === 200) memory.learn(parseText(answer.text), shot.caller)
  }

  const jobs = [
    ...restJobs({ operations, cast, size, memory, judge }),
    ...(await mcpJobs({ origin, cast, size, memory, judge })),
  ]
  const deck = mix(jobs, size.seed)
  const lane = async () => {
    for (let job = deck.pop(); job !== undefined && performance.now() < until; job = deck.pop()) {
      const shot = job.plan(memory)
      const answer = await fire(shot)
      note(
        job.where,
        shot,
        answer,
        answer.status === 0 ? [`no answer: ${answer.text}`] : job.judge(shot, answer),
      )
      done += 1
      if (done % 500 === 0) progress(done, jobs.length, findings.size)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))

  const small: Finding[] = []
  for (const finding of findings.values()) {
    const job = jobs.find(({ where }) => where === finding.where)
    const isSame = async (shot: Shot) => {
      const answer = await fire(shot)
      const wrong = answer.status === 0 ? [`no answer: ${answer.text}`] : (job?.judge(shot, answer) ?? [])
      return wrong.some((what) => what.slice(0, 24) === finding.what.slice(0, 24))
    }
    // With many findings, further reduction is not worth the time.
    const tries = small.length < MAX_REDUCED ? SHRINKS : 0
    small.push({ ...finding, shot: await shrunk(finding.shot, isSame, tries) })
  }
  const called = [...seen].reduce(
    (sum, [where, counts]) => sum + (where.includes(' ') ? 0 : total(counts)),
    0,
  )
  return { sent: done - called, called, seen, findings: small, slowestMs }
}

interface Job {
  readonly where: string
  readonly plan: Plan
  readonly judge: (shot: Shot, answer: Answer) => string[]
}

interface JobParts {
  readonly cast: Cast
  readonly size: Size
  readonly memory: Memories
  readonly judge: Judge
}

function restJobs({
  operations,
  cast,
  size,
  judge,
}: JobParts & { operations: ReturnType<typeof listOperations>['operations'] }): Job[] {
  const chosen = operations.filter(({ route }) => size.only === null || route.includes(size.only))
  const each = Math.ceil(size.requests / Math.max(1, chosen.length))
  return chosen.flatMap((operation, index) =>
    draw(plansFor(operation, cast), each, size.seed + index * 7_919).map((plan) => ({
      where: operation.route,
      plan,
      judge: (shot: Shot, answer: Answer) => judge.rest(operation, shot, answer),
    })),
  )
}

async function mcpJobs({ origin, cast, size, judge }: JobParts & { origin: string }): Promise<Job[]> {
  if (size.calls === 0) return []
  const { tools, plansFor: planCalls } = await openMcp(origin, cast)
  const chosen = tools.filter(({ name }) => size.only === null || name.includes(size.only))
  const each = Math.ceil(size.calls / Math.max(1, chosen.length))
  return chosen.flatMap((tool, index) =>
    draw(planCalls(tool), each, size.seed + 1_000_003 + index * 7_919).map((plan) => ({
      where: tool.name,
      plan,
      judge: (_shot: Shot, answer: Answer) => judge.tool(tool.name, tool.outputSchema, answer),
    })),
  )
}

function draw(plans: fc.Arbitrary<Plan>, count: number, seed: number): Plan[] {
  return Array.from({ length: Math.ceil(count / BATCH) }, (_, batch) =>
    fc.sample(plans, { seed: seed + batch * 104_729, numRuns: Math.min(BATCH, count - batch * BATCH) }),
  ).flat()
}

/** All routes in an order that depends on the seed only. */
function mix<Item>(items: readonly Item[], seed: number): Item[] {
  const [order = []] = fc.sample(
    fc.infiniteStream(fc.nat()).map((stream) => [...stream.take(items.length)]),
    {
      seed,
      numRuns: 1,
    },
  )
  return items
    .map((item, index) => ({ item, at: order[index] ?? 0 }))
    .sort((one, other) => one.at - other.at)
    .map(({ item }) => item)
}

/** The request without every part that the finding does not need. */
async function shrunk(shot: Shot, isSame: (shot: Shot) => Promise<boolean>, tries: number): Promise<Shot> {
  let smallest = shot
  let left = tries
  const attempt = async (smaller: Shot) => {
    if (left <= 0) return
    left -= 1
    if (await isSame(smaller)) smallest = smaller
  }
  for (const name of Object.keys(shot.headers)) {
    if (name === 'content-type') continue
    const { [name]: _, ...headers } = smallest.headers
    await attempt({ ...smallest, headers })
  }
  const at = smallest.target.indexOf('?')
  if (at !== -1) await attempt({ ...smallest, target: smallest.target.slice(0, at) })
  if (smallest.caller !== 'anonymous') await attempt({ ...smallest, caller: 'guest' })
  const body = parseText(smallest.body ?? '')
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    for (const name of Object.keys(body)) {
      const { [name]: _, ...rest } = Object(parseText(smallest.body ?? ''))
      await attempt({ ...smallest, body: JSON.stringify(rest) })
    }
  return smallest
}

function findOutcome({ status, text }: Answer): string {
  // The codes of the outbox are digits, and no problem.
  const code = /"code":"([a-z][a-z_0-9]+)"/.exec(text.replaceAll('\\"', '"'))?.[1]
  return code === undefined ? String(status) : `${status} ${code}`
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
