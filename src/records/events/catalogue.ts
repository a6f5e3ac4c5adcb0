/**
 * Events: what happened to an account, for its owner's programs. May import base, money and the ports. Trigger functions in
 * storage/sql/functions/events write events in the transaction of their effect, and so do the few functions that an effect without
 * a row of its own needs; this folder publishes, lists, streams and delivers them. Invariants: `sequence` grows by account and is never reused; an event is visible once all events below
 * it are; no event contains secrets or personal data.
 */
import { z } from 'zod'
import type { Json } from '../../core/base/json.ts'
import { type Asset, assetDecimals, stablecoins, toDecimal } from '../../core/money/money.ts'

const amount = z.string().describe('Decimal string of the asset.')
const asset = z.string().describe('Asset by symbol.')
const decisionId = z.string().describe('`dec_…`: the policy decision.')
const reason = z.string().nullable().describe('Code of the reason; null without one.')
const transactionHash = z.string().nullable().describe('Hash on the chain; null if there is none yet.')
const chain = z.string().describe('Chain by name.')
const address = z.string().describe('EVM address, lower case.')
const hash = `0x${'5f'.repeat(32)}`
const dec = 'dec_01kah4c2wvf3et8g4r7s1n5m9q'

/** Groups of types with one shape of `data`. @property about meaning by type. */
const groups = [
  {
    about: {
      'transfer.submitted': 'A transfer was accepted: its money is held, and it is being sent.',
      'transfer.confirmed': 'The chain executed a transfer.',
      'transfer.failed': 'A transfer failed or was reversed; its money is available again.',
    },
    data: z.strictObject({
      operation: z.string().describe('Operation that spent the money, such as `wallets.transfer`.'),
      decisionId,
      asset,
      amount,
      chain,
      destination: address,
      transactionHash,
      reason,
    }),
    object: 'transfer',
    example: {
      operation: 'wallets.transfer',
      decisionId: dec,
      asset: 'USDC',
      amount: '12.50',
      chain: 'base-sepolia',
      destination: `0x${'00'.repeat(18)}beef`,
      transactionHash: hash,
      reason: null,
    },
  },
  {
    about: {
      'swap.submitted': 'A swap was accepted: its money is held, and it is being sent.',
      'swap.bridging': 'USDC has left its chain, and is on its way to another.',
      'swap.confirmed': 'A swap was executed: what it bought is available.',
      'swap.failed': 'A swap was not made; its money is available again.',
    },
    data: z.strictObject({
      decisionId,
      asset,
      amount,
      chain,
      buy: z.enum(stablecoins).describe('Stablecoin that is bought, by symbol.'),
      toChain: z.string().describe('Chain on which it arrives, by name.'),
      receivedAmount: z.string().nullable().describe('Amount of it that arrived, decimal; null: none yet.'),
      transactionHash,
      reason,
    }),
    object: 'swap',
    example: {
      decisionId: dec,
      asset: 'USDC',
      amount: '25',
      chain: 'base-sepolia',
      buy: 'EURC',
      toChain: 'base-sepolia',
      receivedAmount: '23.341895',
      transactionHash: hash,
      reason: null,
    },
  },
  {
    about: {
      'deposit.credited': 'Money arrived: from a bank, on the chain, or from another wallet of the gateway.',
      'deposit.reversed': 'A deposit was taken back by the bank or by a reorganization of the chain.',
    },
    data: z.strictObject({
      asset,
      amount,
      place: z.string().describe('Place of the money: `bank`, `broker`, or a chain by name.'),
      transactionHash,
    }),
    object: 'deposit',
    example: { asset: 'USDC', amount: '100', place: 'base-sepolia', transactionHash: hash },
  },
  {
    about: {
      'relay.confirmed': 'The chain executed a gasless payment.',
      'relay.failed': 'A gasless payment failed; no money moved.',
    },
    data: z.strictObject({
      decisionId,
      asset,
      amount,
      chain,
      payer: address,
      destination: address,
      transactionHash,
      reason,
    }),
    object: 'relay',
    example: {
      decisionId: dec,
      asset: 'USDC',
      amount: '3',
      chain: 'base-sepolia',
      payer: `0x${'00'.repeat(18)}cafe`,
      destination: `0x${'00'.repeat(18)}beef`,
      transactionHash: hash,
      reason: null,
    },
  },
  {
    about: { 'decision.denied': 'A spend was denied, or its money was not there.' },
    data: z.strictObject({
      operation: z.string().describe('Denied operation, such as `wallets.transfer`.'),
      verdict: z.enum(['deny', 'insufficient_funds']).describe('`deny`: by the policy or AML rules.'),
      rules: z.array(z.string()).describe('Names of the broken rules.'),
    }),
    object: 'decision',
    example: { operation: 'wallets.transfer', verdict: 'deny', rules: ['daily_budget'] },
  },
  {
    about: {
      'approval.requested': 'An agent asks its owner to approve a call.',
      'approval.approved': 'The owner approved a call.',
      'approval.rejected': 'The owner rejected a call, or its key stopped being active.',
      'approval.expired': 'A request for approval expired undecided.',
      'approval.withdrawn': 'The agent withdrew its request for approval.',
    },
    data: z.strictObject({
      operation: z.string().describe('Operation to approve, such as `wallets.transfer`.'),
      decisionId: decisionId.nullable(),
      expiresAt: z.string().describe('When the request expires, ISO 8601 UTC.'),
    }),
    object: 'approval',
    example: { operation: 'wallets.transfer', decisionId: dec, expiresAt: '2026-11-23T09:30:00.000Z' },
  },
  {
    about: {
      'card.issued': 'A card was issued.',
      'card.updated': 'The status or a control of a card was changed.',
    },
    data: z.strictObject({
      type: z.enum(['virtual', 'physical']).describe('Type of the card.'),
      status: z.enum(['active', 'frozen', 'canceled']).describe('Status of the card.'),
      version: z.int().describe('Rises with every change of a control.'),
    }),
    object: 'card',
    example: { type: 'virtual', status: 'active', version: 1 },
  },
  {
    about: {
      'card.authorized': 'A card purchase was approved; its money is held.',
      'card.declined': 'A card purchase was declined.',
      'card.cleared': 'A card purchase, or a part of it, was settled.',
      'card.reversed': 'Held money of a card purchase was given back.',
      'card.refunded':
        'The merchant paid money back. Reason `refund_beyond_payment`: more than this purchase had paid.',
    },
    data: z.strictObject({
      cardId: z.string().describe('`card_…`'),
      decisionId: z.string().nullable().describe('`dec_…`; null where the network decided by itself.'),
      asset,
      amount,
      reason,
    }),
    object: 'card_transaction',
    example: {
      cardId: 'card_01kah4c2wvf3et8g4r7s1n5m9q',
      decisionId: dec,
      asset: 'USD',
      amount: '19.99',
      reason: 'approved',
    },
  },
  {
    about: {
      'order.accepted': 'The broker accepted an order.',
      'order.filled': 'An order was filled.',
      'order.canceled': 'An order was canceled, or rejected by the broker; a part may be filled.',
      'order.expired': 'An order expired; a part may be filled.',
    },
    data: z.strictObject({
      decisionId,
      symbol: z.string().describe('Ticker.'),
      side: z.enum(['buy', 'sell']).describe('Side of the order.'),
      status: z
        .enum(['accepted', 'partially_filled', 'filled', 'canceled', 'rejected', 'expired'])
        .describe('Status of the order.'),
      asset,
      amount: z.string().describe('Ordered amount, decimal string.'),
      filledAmount: z.string().describe('Filled amount so far, decimal string.'),
    }),
    object: 'order',
    example: {
      decisionId: dec,
      symbol: 'AAPL',
      side: 'buy',
      status: 'filled',
      asset: 'USD',
      amount: '50.00',
      filledAmount: '49.98',
    },
  },
  {
    about: {
      'purchase.delivered': 'A bought URL was delivered.',
      'purchase.undelivered': 'A purchase was paid, and nothing came.',
      'purchase.failed': 'A purchase was not paid and never will be.',
    },
    data: z.strictObject({
      decisionId,
      origin: z.string().describe('Origin of the seller.'),
      asset,
      amount: z.string().describe('Agreed price, decimal string.'),
      isPaid: z.boolean().describe('True if the chain shows the payment.'),
      transactionHash,
      reason,
    }),
    object: 'purchase',
    example: {
      decisionId: dec,
      origin: 'https://seller.example',
      asset: 'USDC',
      amount: '0.01',
      isPaid: true,
      transactionHash: hash,
      reason: null,
    },
  },
  {
    about: {
      'channel.opened': 'The deposit of a payment channel reached its contract.',
      'channel.closed': 'A payment channel is closed: what its seller did not take is the account’s again.',
    },
    data: z.strictObject({
      origin: z.string().describe('Origin of the seller.'),
      asset,
      amount: z.string().describe('Deposited, decimal string.'),
      claimedAmount: z.string().describe('Taken by the seller; "0" while it is open.'),
      returnedAmount: z.string().describe('Paid by vouchers that the seller never took, and back.'),
    }),
    object: 'channel',
    example: {
      origin: 'https://seller.example',
      asset: 'USDC',
      amount: '0.05',
      claimedAmount: '0.012',
      returnedAmount: '0',
    },
  },
  {
    about: {
      'recourse.opened': 'Somebody asks for the money of a payment back.',
      'recourse.step': 'A way to get money back was tried, or money came back.',
      'recourse.recovered': 'The money is back, a part of it, or what was bought.',
      'recourse.refused': 'The payee refused, or the payment cannot be taken back.',
      'recourse.expired': 'The money did not come back in time.',
    },
    data: z.strictObject({
      decisionId: decisionId.nullable(),
      status: z
        .enum(['open', 'recovered', 'partly_recovered', 'refused', 'expired', 'impossible'])
        .describe('Status of the recourse.'),
      route: z.string().describe('Way that was tried last.'),
      asset,
      claimedAmount: z.string().describe('Amount to get back, decimal string.'),
      recoveredAmount: z.string().describe('What is back, decimal string.'),
      isDelivered: z.boolean().describe('True if what was bought came after all.'),
      action: z.string().nullable().describe('Latest step; `refund`: money arrived.'),
      outcome: z.string().nullable().describe('Outcome of that step.'),
      refundOf: z
        .strictObject({ kind: z.string().describe('Its kind.'), id: z.string().describe('Its id.') })
        .describe('The payment.'),
    }),
    object: 'recourse',
    example: {
      decisionId: dec,
      status: 'recovered',
      route: 'refund_request',
      asset: 'USDC',
      claimedAmount: '0.01',
      recoveredAmount: '0.01',
      isDelivered: false,
      action: 'refund',
      outcome: 'done',
      refundOf: { kind: 'purchase', id: 'buy_01kah4c2wvf3et8g4r7s1n5m9q' },
    },
  },
  {
    about: {
      'schedule.created': 'A schedule was made.',
      'schedule.paused': 'A schedule was paused.',
      'schedule.resumed': 'A paused or failing schedule goes on.',
      'schedule.failing': 'A schedule failed three times in a row, and stops until its owner lets it go on.',
      'schedule.ended': 'A schedule has ended for good.',
    },
    data: z.strictObject({
      operation: z.string().describe('Operation of each run, such as `wallets.transfer`.'),
      status: z.enum(['active', 'paused', 'failing', 'ended']).describe('Status of the schedule.'),
      nextAt: z.string().nullable().describe('When it is due next, ISO 8601 UTC; null: never.'),
    }),
    object: 'schedule',
    example: { operation: 'wallets.transfer', status: 'active', nextAt: '2026-12-01T09:00:00.000Z' },
  },
  {
    about: {
      'schedule.completed': 'A run of a schedule was made.',
      'schedule.failed': 'A run of a schedule failed.',
      'schedule.denied': 'A run of a schedule was denied, such as by the policy.',
      'schedule.missed': 'A due time passed while the gateway was off for longer than the schedule allows.',
    },
    data: z.strictObject({
      operation: z.string().describe('Operation of the run, such as `wallets.transfer`.'),
      dueAt: z.string().describe('When it was due, ISO 8601 UTC.'),
      decisionId: decisionId.nullable(),
      reason,
      made: z
        .strictObject({ kind: z.string().describe('Its kind.'), id: z.string().describe('Its id.') })
        .nullable()
        .describe('What the run made, such as a transfer; null: nothing.'),
    }),
    object: 'schedule',
    example: {
      operation: 'wallets.transfer',
      dueAt: '2026-12-01T09:00:00.000Z',
      decisionId: dec,
      reason: null,
      made: { kind: 'transfer', id: 'tx_01kah4c2wvf3et8g4r7s1n5m9q' },
    },
  },
  {
    about: {
      'payout.sent': 'A payout was sent to the bank.',
      'payout.paid': 'The bank paid a payout.',
      'payout.returned': 'A payout was returned or never left; its money is available again.',
    },
    data: z.strictObject({
      decisionId,
      asset,
      amount,
      status: z.enum(['sent', 'paid', 'returned', 'failed']).describe('`failed`: the money never left.'),
      recipientId: z.string().describe('`rcp_…`: the recipient.'),
      reason,
    }),
    object: 'payout',
    example: {
      decisionId: dec,
      asset: 'USD',
      amount: '250.00',
      status: 'paid',
      recipientId: 'rcp_01kah4c2wvf3et8g4r7s1n5m9q',
      reason: null,
    },
  },
  {
    about: {
      'key.created': 'A key of an agent, a developer or an OAuth client was created.',
      'key.updated': 'The scopes, the policy or the expiry of a key was changed.',
      'key.paused': 'A key was paused.',
      'key.resumed': 'A paused key was resumed.',
      'key.revoked': 'A key was revoked.',
    },
    data: z.strictObject({
      kind: z.enum(['agent', 'developer', 'grant']).describe('Kind of the key; `grant`: of an OAuth client.'),
      status: z.enum(['active', 'paused', 'revoked']).describe('Status of the key.'),
      scopes: z.array(z.string()).describe('Scopes of the key.'),
      policyVersion: z.int().describe('Rises with every change of the policy.'),
    }),
    object: 'key',
    example: { kind: 'agent', status: 'active', scopes: ['wallets:transfer'], policyVersion: 1 },
  },
  {
    about: {
      'security.factor_added': 'A sign-in method or a second factor was added.',
      'security.factor_removed': 'A sign-in method or a second factor was removed.',
    },
    data: z.strictObject({ kind: z.string().describe('Kind of the factor, such as `passkey` or `mfa`.') }),
    object: 'passkey',
    example: { kind: 'passkey' },
  },
  {
    about: {
      'security.locked': 'The account was locked.',
      'security.unlocked': 'The account was unlocked.',
    },
    data: z.strictObject({ reason }),
    object: 'account',
    example: { reason: 'person' },
  },
  {
    about: { 'security.signed_in': 'A person signed in.' },
    data: z.strictObject({ method: z.string().describe('Sign-in method, such as `passkey`.') }),
    object: 'session',
    example: { method: 'passkey' },
  },
  {
    about: {
      'contact.created': 'A contact was added.',
      'contact.updated': 'A contact was changed.',
      'contact.removed': 'A contact was removed.',
    },
    data: z.strictObject({
      isReaddressed: z
        .boolean()
        .describe(
          'True if its addresses or its recipient are others than before: what waits for it is refused.',
        ),
    }),
    object: 'contact',
    example: { isReaddressed: true },
  },
  {
    about: {
      'request.created': 'A request for money was made.',
      'request.partly_paid': 'A part of a request arrived.',
      'request.paid': 'A request is paid.',
      'request.overpaid': 'More arrived for a request that was paid.',
      'request.paid_late': 'Money arrived for a request that had expired or was canceled.',
      'request.reversed': 'What had arrived for a request was taken back by the bank or the chain.',
      'request.expired': 'A request expired before it was paid.',
      'request.canceled': 'A request was canceled.',
    },
    data: z.strictObject({
      status: z
        .enum(['open', 'partly_paid', 'paid', 'expired', 'canceled'])
        .describe('Status of the request.'),
      asset,
      amount,
      receivedAmount: z.string().describe('What arrived for it so far, decimal string.'),
      expiresAt: z.string().describe('When it expires, ISO 8601 UTC.'),
    }),
    object: 'request',
    example: {
      status: 'paid',
      asset: 'USDC',
      amount: '25',
      receivedAmount: '25',
      expiresAt: '2026-12-05T09:30:00.000Z',
    },
  },
  {
    about: {
      'person.joined': 'A person who was invited joined the account.',
      'person.role_changed': 'A person may do more or less in the account.',
      'person.removed': 'A person left the account, or was removed.',
    },
    data: z.strictObject({
      role: z
        .enum(['accountant', 'viewer', 'approver', 'owner'])
        .describe('Role of the person; of a removed one the last.'),
    }),
    object: 'person',
    example: { role: 'approver' },
  },
  {
    about: { 'kyc.updated': 'An identity verification was started, or its status changed.' },
    data: z.strictObject({
      level: z.enum(['basic', 'full']).describe('Level of the verification.'),
      status: z.enum(['init', 'pending', 'approved', 'retry', 'rejected']).describe('Status of the review.'),
    }),
    object: 'kyc',
    example: { level: 'basic', status: 'approved' },
  },
  {
    about: { 'wallet.shortfall': 'The chain holds less of an asset than the books, or that has changed.' },
    data: z.strictObject({
      asset,
      chain: z.string().optional().describe('Chain by name; absent in older events.'),
      frozenAmount: z.string().describe('Missing and no longer spendable, decimal string; "0" once covered.'),
      uncoveredAmount: z.string().describe('Held for open spends and not covered, decimal string.'),
    }),
    object: 'wallet',
    example: { asset: 'USDC', chain: 'base-sepolia', frozenAmount: '1', uncoveredAmount: '0' },
  },
  {
    about: { 'webhook.disabled': 'A webhook endpoint was disabled, because it failed for two days.' },
    data: z.strictObject({
      failingSince: z.string().describe('Time of the first failure since the last success, ISO 8601 UTC.'),
    }),
    object: 'webhook_endpoint',
    example: { failingSince: '2026-11-20T09:30:00.000Z' },
  },
  {
    about: { ping: 'A test of a webhook endpoint.' },
    data: z.strictObject({}),
    object: 'webhook_endpoint',
    example: {},
  },
] as const

/** Every type with its meaning, the kind of its object, and an example of its data. */
export const eventTypes: ReadonlyMap<
  string,
  { readonly about: string; readonly object: string; readonly example: Readonly<Record<string, unknown>> }
> = new Map(
  groups.flatMap(({ about, object, example }) =>
    Object.entries(about).map(([type, text]) => [type, { about: text, object, example }]),
  ),
)

/** An event as its readers see it. */
const envelope = {
  id: z.string().describe('`evt_…`; the same in every delivery of the event.'),
  sequence: z.int().describe('Grows by account, with or without gaps, and is never reused.'),
  createdAt: z.string().describe('Time of the effect, ISO 8601 UTC.'),
  accountId: z.string().describe('Account of the event: `acct_…`'),
  agentId: z.string().nullable().describe('Key that caused the event or that it is about; null: neither.'),
  task: z.string().nullable().describe('Task that the spend or the key is labeled with; null: none.'),
  object: z
    .strictObject({
      kind: z.string().describe('Kind of the object, such as `transfer`.'),
      id: z.string().describe('Id of the object.'),
    })
    .describe('Object of the event.'),
}

export const eventType = z
  .string()
  .max(64)
  .refine((type) => eventTypes.has(type), 'is no type of an event')

const [first, ...rest] = groups.map(({ about, data, example }) => {
  const types = Object.keys(about)
  return z.strictObject({
    ...envelope,
    type: z.enum(types).describe(
      Object.entries(about)
        .map(([type, text]) => `\`${type}\`: ${text}`)
        .join(' '),
    ),
    data: data.describe('Facts of the event.').meta({ examples: [example] }),
  })
})
if (first === undefined) throw new Error('the catalogue has no events')
export const eventView = z.discriminatedUnion('type', [first, ...rest])
eventView.register(z.globalRegistry, { id: 'Event' })

export type EventView = z.output<typeof eventView>

/** A stored event. @property data amounts in smallest units, as text. */
export interface StoredEvent {
  readonly account_id: string
  readonly sequence: bigint
  readonly id: string
  readonly agent_id: string | null
  readonly type: string
  readonly object_kind: string
  readonly object_id: string
  readonly data: unknown
  readonly at: Date
  readonly task: string | null
}

/** Converts a stored event to what its readers see. @throws ZodError for an event that is not in the catalogue: a bug. */
export function viewEvent(event: StoredEvent): EventView {
  return eventView.parse({
    id: event.id,
    sequence: Number(event.sequence),
    type: event.type,
    createdAt: event.at.toISOString(),
    accountId: event.account_id,
    agentId: event.agent_id,
    task: event.task,
    object: { kind: event.object_kind, id: event.object_id },
    data: shownData(storedData.parse(event.data)),
  })
}

const storedData = z.record(z.string(), z.json())
const knownAsset = z.custom<Asset>((name) => typeof name === 'string' && name in assetDecimals)

function shownData(stored: Readonly<Record<string, Json>>): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(stored).map(([name, value]) => {
      if (/^(expiresAt|failingSince|nextAt|dueAt)$/.test(name) && value !== null)
        return [name, new Date(String(value)).toISOString()]
      if (!/(^u|U)nits$/.test(name)) return [name, value]
      const shown =
        value === null
          ? null
          : toDecimal({ asset: knownAsset.parse(stored.asset), units: BigInt(String(value)) })
      return [name.replace('units', 'amount').replace('Units', 'Amount'), shown]
    }),
  )
}
