/** What the operations of a run share: the world, its people and their keys, and what clients were told. */
import { createHash, createHmac, createPrivateKey, type KeyObject } from 'node:crypto'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import type { KeyedOwner } from './actors/keyed-owners.ts'
import type { Seeded } from './seeded.ts'
import { type Answer, HOME, type World } from './world.ts'

export type Bearer = Readonly<Record<'authorization', string>>

/** @property dailyCents its daily budget. */
export interface Key {
  readonly id: string
  readonly bearer: Bearer
  readonly dailyCents: number
  /** Ids of the keys above it, root first. */
  readonly above: readonly string[]
  /** Its owner was told that it can spend no more. Agents try on. */
  isStopped: boolean
}

export interface Account {
  readonly id: string
  readonly bearer: Bearer
  /** Of its second factor. */
  readonly totpSecret: string
  readonly walletAddress: string
  readonly bankAccountId: string
  readonly keys: Key[]
  readonly cardIds: string[]
  recipientId: string
  /** The most that all its keys together may spend on a day; null for no cap. */
  capCents: number | null
  /** Its owner was told that it is locked. */
  isLocked: boolean
}

/** A transfer to an address of its own. @property answer the last one; undefined if the client gave up. */
export interface SentTransfer {
  readonly id: string
  readonly to: string
  readonly cents: number
  readonly chain: string
  /** Credentials that have used its key of idempotency. */
  readonly users: string[]
  answer: Answer | undefined
}

/** What a payer has signed. @property funds its USDC before, in smallest units. */
export interface SignedPayment {
  readonly id: string
  readonly kind: 'sale' | 'relay'
  readonly payer: Address
  readonly funds: bigint
}

/** A channel that pays for quotes. @property signed highest voucher, in smallest units. @property answered vouchers that were. */
export interface PayingChannel {
  readonly id: string
  readonly channelId: `0x${string}`
  readonly price: bigint
  signed: bigint
  answered: number
}

/** Purchases from one seller by channel. @property most what they may cost together, in smallest units. */
export interface BoughtChannel {
  readonly id: string
  readonly payTo: string
  most: bigint
}

/** A deposit as the bank has told it. */
export interface ToldDeposit {
  readonly id: string
  readonly accountId: string
  readonly cents: number
  readonly isReturned: boolean
  /** It was told with another amount too. */
  readonly isContradicted: boolean
}

/** A card transaction as its network tells it. */
export interface Swipe {
  readonly token: string
  readonly cardId: string
  readonly cents: number
  readonly events: { token: string; type: string; amount: number; result: string }[]
}

interface Call {
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly tries?: number
  /** Answers after which the call is repeated. */
  readonly isOpen?: (answer: Answer) => boolean
}

export class Scene {
  readonly accounts: Account[] = []
  readonly keyedOwners: KeyedOwner[] = []
  readonly transfers: SentTransfer[] = []
  readonly swipes: Swipe[] = []
  readonly deposits: ToldDeposit[] = []
  readonly payments: SignedPayment[] = []
  readonly channels: PayingChannel[] = []
  readonly boughtChannels: BoughtChannel[] = []
  /** What contradicts a promise, seen by a client while it called. */
  readonly found: string[] = []
  readonly credentials = { lithicWebhookSecret: '' }
  bankKey!: KeyObject
  readonly world: World
  #numbers = 0

  constructor(world: World) {
    this.world = world
  }

  /** A name that no other operation has. */
  nextName(kind: string): string {
    this.#numbers += 1
    return `${kind}-${this.#numbers}`
  }

  /** A transfer to an address that nothing else is sent to. */
  newTransfer(cents: number, chain = HOME): SentTransfer {
    const id = this.nextName('transfer')
    return { id, to: strangersAddress(id), cents, chain, users: [], answer: undefined }
  }

  pause(ms: number): Promise<void> {
    return this.world.pause(ms)
  }

  /** Calls any gateway, again and again with the same idempotency key, until there is an answer. */
  async call(
    random: Seeded,
    method: string,
    path: string,
    { body, headers, tries = 30, isOpen = () => false }: Call = {},
  ): Promise<Answer | undefined> {
    for (let left = tries; left > 0; left -= 1) {
      const gateway = random.oneOf(this.world.gateways)
      const answer = await this.world
        .request(gateway, method, path, {
          ...(body === undefined ? {} : { body }),
          ...(headers && { headers }),
        })
        .catch(() => undefined)
      if (answer !== undefined && !isRepeated(answer) && !isOpen(answer)) return answer
      await this.pause(100 + random.below(1_500))
    }
    return undefined
  }

  /** A webhook of the card network or the bank, delivered until it is accepted. */
  tell(
    random: Seeded,
    provider: 'bridge' | 'lithic',
    { id, message }: { id: string; message: object },
  ): Promise<Answer | undefined> {
    const body = JSON.stringify(message)
    const at = this.world.scheduler.now
    const headers = provider === 'lithic' ? this.#signCard(id, body, at) : this.#signBank(body, at)
    return this.call(random, 'POST', `/api/webhooks/${provider}`, { body, headers, tries: 40 })
  }

  #signCard(id: string, body: string, at: number): Record<string, string> {
    const timestamp = String(Math.floor(at / 1_000))
    const secret = Buffer.from(this.credentials.lithicWebhookSecret.replace('whsec_', ''), 'base64')
    const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  }

  #signBank(body: string, at: number): Record<string, string> {
    return { 'x-webhook-signature': signBankingWebhook(body, { key: this.bankKey, at: new Date(at) }) }
  }

  readCredentials({ body }: Answer): void {
    this.credentials.lithicWebhookSecret = text(body.lithicWebhookSecret)
    this.bankKey = createPrivateKey(text(body.bridgeWebhookPrivateKey))
  }
}

const openCodes = new Set<unknown>(['idempotency_in_progress', 'settlement_pending'])

function isRepeated({ status, body }: Answer): boolean {
  return status >= 500 || status === 429 || openCodes.has(body.code)
}

export function text(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`a text is missing: ${JSON.stringify(value)}`)
  return value
}

/** A member of a list in an answer. */
export function items(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? value : []
}

/** @returns the body of an answer that must be a success. @throws Error with the answer. */
export async function succeed(answer: ReturnType<Scene['call']>): Promise<Record<string, unknown>> {
  const given = await answer
  if (given === undefined || given.status >= 300) throw new Error(`the world was not set up: ${given?.text}`)
  return given.body
}

/** An address that belongs to nobody. */
export function strangersAddress(name: string): `0x${string}` {
  return `0x${createHash('sha256').update(name).digest('hex').slice(24)}`
}

export function formatCents(cents: number): string {
  return `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`
}

/** A code of a TOTP secret. @see https://www.rfc-editor.org/rfc/rfc6238 */
export { computeTotp } from '../people/identity/signed-in.ts'
