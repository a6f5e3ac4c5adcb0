/** `bursar listen`: prints events as they happen, and forwards them to a local program. */

import type { Event } from '../client/index.ts'
import { randomToken } from '../core/base/ids.ts'
import { visibleText } from '../core/base/untrusted-text.ts'
import { eventTypes } from '../records/events/catalogue.ts'
import { chooseCredential, chooseGateway, describeError, type Env } from './connect.ts'
import { type Forwarder, startForwarding } from './forward.ts'
import { parseUrl } from './parse-url.ts'
import { streamEvents } from './stream.ts'

export interface ListenValues {
  readonly url?: string | undefined
  readonly key?: string | undefined
  readonly types?: string | undefined
  readonly json?: boolean | undefined
  readonly 'forward-to'?: string | undefined
}

const SECRET_BYTES = 24

/** @returns exit code 0 when it is interrupted. @throws Error with the reason when the gateway refuses. */
export async function listen(values: ListenValues, env: Env): Promise<number> {
  const origin = chooseGateway(values.url, env)
  const types = parseTypes(values.types)
  const credential = chooseCredential({ origin, key: values.key }, env)
  const forwarder = createForwarder(values['forward-to'], env)
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())
  // The reader has ended, as `head` does.
  process.stdout.once('error', () => interrupted.abort())
  let opened = 0
  const onOpen = () => {
    opened += 1
    tell(opened === 1 ? `Listening to ${origin}. Ctrl-C ends.` : 'Connected again.')
  }
  let count = 0
  try {
    for await (const event of streamEvents(credential, { types, signal: interrupted.signal, onOpen })) {
      count += 1
      process.stdout.write(`${values.json === true ? jsonLine(event) : readableLine(event)}\n`)
      forwarder?.push(event)
    }
  } catch (error) {
    if (!interrupted.signal.aborted) throw new Error(describeError(error), { cause: error })
  }
  const forwarded = await forwarder?.end()
  const more =
    forwarded === undefined ? '' : `, ${forwarded.delivered} delivered, ${forwarded.lost} not delivered`
  tell(`${count} events${more}.`)
  return 0
}

/** @throws Error naming a type that is not in the catalogue. */
function parseTypes(text: string | undefined): readonly string[] {
  const types = (text ?? '').split(',').filter((type) => type !== '')
  const unknown = types.find((type) => !eventTypes.has(type))
  if (unknown !== undefined)
    throw new Error(`"${visibleText(unknown)}" is no type of an event. "bursar trigger" lists them.`)
  return types
}

function createForwarder(target: string | undefined, { BURSAR_WEBHOOK_SECRET }: Env): Forwarder | undefined {
  if (target === undefined) return undefined
  const url = parseUrl(target)
  const own = BURSAR_WEBHOOK_SECRET || undefined
  if (own !== undefined && !/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/.test(own))
    throw new Error('BURSAR_WEBHOOK_SECRET must be "whsec_" and at least 24 bytes in base64.')
  const secret = own ?? `whsec_${Buffer.from(randomToken(SECRET_BYTES), 'base64url').toString('base64')}`
  tell(
    `Forwarding to ${visibleText(url.href)}, signed with ${own === undefined ? secret : 'BURSAR_WEBHOOK_SECRET'}`,
  )
  return startForwarding({ target: url, secret, tell })
}

/** Time, type, object, and the amount when there is one. */
function readableLine({ createdAt, type, object, data }: Event): string {
  const { amount, asset } = { amount: undefined, asset: undefined, ...data }
  const money = amount === undefined ? [] : [`${amount} ${asset ?? ''}`]
  return [createdAt, type, object.id, ...money].map(visibleText).join('  ')
}

/** JSON of one line without characters that a terminal would obey or hide. */
function jsonLine(event: Event): string {
  return JSON.stringify(event).replaceAll(
    /[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu,
    (character) =>
      Array.from(
        { length: character.length },
        (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
      ).join(''),
  )
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
