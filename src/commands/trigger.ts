/** `bursar trigger`: plays what causes an event in the sandbox. Nothing is faked: the event is that of the effect. */
import { Bursar, BursarProblem, type Event } from '../client/index.ts'
import { timers } from '../core/base/timers.ts'
import { visibleText } from '../core/base/untrusted-text.ts'
import { eventTypes } from '../records/events/catalogue.ts'
import { chooseCredential, chooseGateway, describeError, type Env } from './connect.ts'
import { reasons, scenes } from './scenes.ts'
import { streamEvents } from './stream.ts'

/** Time for effects that a job or a provider completes. */
const HEAR_MS = 60_000

/** @returns exit code 0 once the event was heard, 1 for a type that cannot be played. @throws Error with the reason. */
export async function trigger(
  [type, ...rest]: readonly string[],
  { url }: { url?: string | undefined },
  env: Env,
): Promise<number> {
  if (type === undefined) return list()
  if (rest.length > 0) throw new Error('Usage: bursar trigger [TYPE]')
  if (!eventTypes.has(type))
    throw new Error(`"${visibleText(type)}" is no type of an event. "bursar trigger" lists them.`)
  const scene = scenes[type]
  if (scene === undefined) throw new Error(`${type} cannot be played: ${reasons[type]}`)
  const credential = chooseCredential({ origin: chooseGateway(url, env) }, env)
  const bursar = new Bursar(credential)
  try {
    const sandbox = await requireSandbox(bursar)
    const heard = await listenFor(credential, type)
    const step = (text: string) => process.stdout.write(`${visibleText(text)}\n`)
    try {
      await scene({ bursar, url: credential.url, sandbox, step })
      const event = await heard.event()
      step(`${event.type}  ${event.id}  ${event.object.kind} ${event.object.id}`)
    } finally {
      heard.end()
    }
  } catch (error) {
    throw new Error(describeError(error), { cause: error })
  }
  return 0
}

function list(): number {
  const lines = [...eventTypes].map(([type, { about }]) => {
    const reason = reasons[type]
    return `  ${type.padEnd(26)}${reason === undefined ? about : `not played: ${reason}`}`
  })
  process.stdout.write(`${lines.join('\n')}\n`)
  return 0
}

/** @throws Error for a gateway with real money. */
async function requireSandbox(bursar: Bursar) {
  try {
    return await bursar.sandbox.credentials()
  } catch (error) {
    if (error instanceof BursarProblem && error.status === 404)
      throw new Error('This gateway is no sandbox: nothing is played where money is real.', { cause: error })
    throw error
  }
}

/** Opens the stream before the scene, so that its event is not missed. */
async function listenFor(credential: Parameters<typeof streamEvents>[0], type: string) {
  const ended = new AbortController()
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const events = streamEvents(credential, { types: [type], signal: ended.signal, onOpen: () => open() })
  const first = (async (): Promise<Event> => {
    for await (const event of events) return event
    throw new Error(`${type} was not heard.`)
  })()
  // A refusal ends the wait for the opening too, and is thrown once.
  await Promise.race([opened, first])
  return {
    event: () =>
      Promise.race([
        first,
        timers.sleep(HEAR_MS, { signal: ended.signal }).then((): never => {
          throw new Error(`${type} was not heard within ${HEAR_MS / 1000} s.`)
        }),
      ]),
    end: () => {
      ended.abort()
      first.catch(() => undefined)
    },
  }
}
