/** Scenes of `bursar trigger`: by type of event, the calls that cause it in the sandbox, or why it cannot be played. */

import { Bursar, BursarProblem, type SandboxCredentialsResponse } from '../client/index.ts'
import { systemClock } from '../core/base/clock.ts'
import { randomToken } from '../core/base/ids.ts'
import { timers } from '../core/base/timers.ts'
import { signWebhook } from '../providers/standard-webhooks.ts'

export interface Stage {
  readonly bursar: Bursar
  /** Origin of the gateway. */
  readonly url: string
  readonly sandbox: SandboxCredentialsResponse
  /** Prints what was done. */
  readonly step: (text: string) => void
}

type Scene = (stage: Stage) => Promise<void>

/** An address without an owner. */
const STRANGER = '0x000000000000000000000000000000000000dEaD'
const CENTS = 100
const MAX_READS = 40
const READ_EVERY_MS = 250

const transfer: Scene = async ({ bursar, step }) => {
  const { transferId, amount } = await bursar.wallets.transfer({
    destination: STRANGER,
    token: 'USDC',
    amount: '0.01',
    signature: 'sandbox',
  })
  step(`transferred ${amount} USDC to ${STRANGER}: ${transferId}`)
}

async function newCard({ bursar, step }: Stage): Promise<string> {
  const { id } = await bursar.cards.issue({ nickname: 'Trigger' })
  step(`issued a card: ${id}`)
  return id
}

/** A purchase with a card. @returns the processor's token of it. */
async function pay({ bursar, step }: Stage, cardId: string, clear: boolean): Promise<string> {
  const { token, result, cleared } = await bursar.sandbox.authorizations({ cardId, amount: '1', clear })
  step(`paid 1.00 USD with ${cardId}: ${result}${cleared ? ', cleared' : ''} (${token})`)
  return token
}

/** A purchase that its merchant then changes, by the card network's signed webhook. */
const playChange =
  (type: 'AUTHORIZATION_REVERSAL' | 'RETURN', status: string): Scene =>
  async (stage) => {
    const { sandbox, step, url } = stage
    const cardId = await newCard(stage)
    const token = await pay(stage, cardId, type === 'RETURN')
    const part = (kind: string, amount: number) => ({
      token: `${token}-${kind.toLowerCase()}`,
      type: kind,
      amount,
      result: 'APPROVED',
    })
    const body = JSON.stringify({
      event_type: 'card_transaction.updated',
      token,
      card_token: cardId,
      status,
      events: [
        { ...part('AUTHORIZATION', CENTS), token: `${token}-a` },
        ...(type === 'RETURN' ? [{ ...part('CLEARING', CENTS), token: `${token}-c` }] : []),
        part(type, -CENTS),
      ],
    })
    const signed = signWebhook(
      { id: `msg_${randomToken(12)}`, body, at: systemClock() },
      sandbox.lithicWebhookSecret,
    )
    const response = await fetch(new URL('/api/webhooks/lithic', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...signed },
      body,
    })
    if (!response.ok) throw new Error(`The webhook of the card network answered ${response.status}.`)
    step(`the card network sent ${type} of 1.00 USD for ${token}`)
    await cancel(stage, cardId)
  }

async function cancel({ bursar, step }: Stage, cardId: string): Promise<void> {
  await bursar.cards.update({ cardId, status: 'canceled' })
  step(`canceled ${cardId}`)
}

/** A purchase with a new card, which is canceled afterwards. */
const playPayment =
  ({ clear, isFrozen }: { clear: boolean; isFrozen: boolean }): Scene =>
  async (stage) => {
    const cardId = await newCard(stage)
    if (isFrozen) {
      await stage.bursar.cards.settings({ cardId, freeze: true })
      stage.step(`froze ${cardId}`)
    }
    await pay(stage, cardId, clear)
    await cancel(stage, cardId)
  }

/** A payout of 1 USD to a new recipient, whose outcome is decided once the bank has it. */
const payOut =
  (outcome: 'paid' | 'returned'): Scene =>
  async ({ bursar, step }) => {
    const recipient = await bursar.banking.recipients.create({
      currency: 'USD',
      name: 'Trigger',
      country: 'US',
      // Payouts to a number that ends in 0000 wait for a decision.
      account: { routingNumber: '021000021', accountNumber: '123450000' },
    })
    step(`added a recipient: ${recipient.id}`)
    const { id } = await bursar.banking.payouts.create({ recipientId: recipient.id, amount: '1' })
    step(`pays out 1.00 USD: ${id}`)
    for (let tries = 0; tries < MAX_READS; tries += 1) {
      const { status } = await bursar.banking.payouts.get({ id })
      if (status !== 'pending') break
      await timers.sleep(READ_EVERY_MS)
    }
    await bursar.sandbox.payouts({ payoutId: id, outcome })
    step(`the bank reports ${id} as ${outcome}`)
    await bursar.banking.recipients.remove({ id: recipient.id })
    step(`removed ${recipient.id}`)
  }

/** Runs a scene with a new key that may transfer at most 0.01 USDC, and revokes it. */
const withKey =
  (scene: (stage: Stage, key: { id: string; client: Bursar }) => Promise<void>): Scene =>
  async (stage) => {
    const { bursar, step, url } = stage
    const { id, key } = await bursar.developer.keys.create({
      name: 'Trigger',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '0.01' },
        dailyBudget: { max: '0.01' },
        categories: { allow: ['transfer'] },
      },
    })
    step(`created a key that may transfer 0.01 USD: ${id}`)
    try {
      await scene(stage, { id, client: new Bursar({ url, apiKey: key ?? '' }) })
    } finally {
      await bursar.developer.keys.revoke({ id })
      step(`revoked ${id}`)
    }
  }

const overLimit = { destination: STRANGER, token: 'USDC', amount: '0.02' } as const

/** A key's question to its owner, and what follows. */
const playRequest = (then: (stage: Stage, approvalId: string, client: Bursar) => Promise<void>): Scene =>
  withKey(async (stage, { client }) => {
    const { approvalId } = await client.approvals.request({
      operation: 'wallets.transfer',
      input: overLimit,
      reason: 'Played by "bursar trigger".',
    })
    stage.step(`the key asked to transfer 0.02 USDC: ${approvalId}`)
    await then(stage, approvalId, client)
  })

const playDecision = (decision: 'approve' | 'reject'): Scene =>
  playRequest(async ({ bursar, step }, id) => {
    const { status } = await bursar.approvals.decide({ id, decision })
    step(`the owner decided ${id}: ${status}`)
  })

const order: Scene = async ({ bursar, step }) => {
  const { id, status } = await bursar.investing.order({ symbol: 'VTI', side: 'buy', notional: '1' })
  step(`ordered VTI for 1.00 USD: ${id} (${status})`)
}

const limitOrder: Scene = async ({ bursar, step }) => {
  const { id } = await bursar.investing.order({
    symbol: 'VTI',
    side: 'buy',
    notional: '1',
    type: 'limit',
    limitPrice: '1',
  })
  step(`ordered VTI at a price of 1.00 USD, which it does not reach: ${id}`)
  await bursar.investing.orders.cancel({ id })
  step(`canceled ${id}`)
}

/** Buys from a seller of the sandbox, which may be dishonest: the refusal is then the scene. */
const buy =
  (seller: string): Scene =>
  async ({ bursar, step }) => {
    const { sellers } = await bursar.sandbox.sellers()
    const found = sellers.find(({ name }) => name === seller)
    if (found === undefined) throw new Error(`The sandbox has no seller ${seller}.`)
    step(`buying ${found.url}: ${found.about}`)
    try {
      const { purchaseId, status } = await bursar.purchases.buy({ url: found.url, maxAmount: '0.1' })
      step(`the purchase ${purchaseId} is ${status}`)
    } catch (error) {
      if (!(error instanceof BursarProblem)) throw error
      step(`the purchase was refused: ${error.code}`)
    }
  }

export const scenes: Readonly<Record<string, Scene>> = {
  'transfer.submitted': transfer,
  'transfer.confirmed': transfer,
  'deposit.credited': async ({ bursar, step }) => {
    const { safeAddress: address } = await bursar.wallets.get()
    const { amount } = await bursar.sandbox.faucet({ address, token: 'USDC', amount: '1' })
    step(`the faucet paid ${amount} USDC to ${address}`)
  },
  'decision.denied': withKey(async ({ step }, { client }) => {
    try {
      await client.wallets.transfer(overLimit)
    } catch (error) {
      if (!(error instanceof BursarProblem) || error.code !== 'policy_denied') throw error
      step(`a transfer of 0.02 USDC was denied: ${error.problem.decisionId}`)
    }
  }),
  'approval.requested': playRequest(async () => undefined),
  'approval.approved': playDecision('approve'),
  'approval.rejected': playDecision('reject'),
  'approval.withdrawn': playRequest(async ({ step }, id, client) => {
    await client.approvals.withdraw({ id })
    step(`the key withdrew ${id}`)
  }),
  'card.issued': async (stage) => cancel(stage, await newCard(stage)),
  'card.updated': async (stage) => cancel(stage, await newCard(stage)),
  'card.authorized': playPayment({ clear: false, isFrozen: false }),
  'card.declined': playPayment({ clear: false, isFrozen: true }),
  'card.cleared': playPayment({ clear: true, isFrozen: false }),
  'card.reversed': playChange('AUTHORIZATION_REVERSAL', 'VOIDED'),
  'card.refunded': playChange('RETURN', 'SETTLED'),
  'order.accepted': limitOrder,
  'order.filled': order,
  'order.canceled': limitOrder,
  'purchase.delivered': buy('weather'),
  'purchase.undelivered': buy('times-out'),
  'payout.sent': payOut('paid'),
  'payout.paid': payOut('paid'),
  'payout.returned': payOut('returned'),
  'key.created': withKey(async () => undefined),
  'key.paused': withKey(async ({ bursar, step }, { id }) => {
    await bursar.developer.keys.update({ id, status: 'paused' })
    step(`paused ${id}`)
  }),
  'key.resumed': withKey(async ({ bursar, step }, { id }) => {
    for (const status of ['paused', 'active'] as const) {
      await bursar.developer.keys.update({ id, status })
      step(`${id} is ${status}`)
    }
  }),
  'key.revoked': withKey(async () => undefined),
  ping: async ({ bursar, step }) => {
    // A port that refuses connections: the test is heard in the stream.
    const { id } = await bursar.webhookEndpoints.create({ url: 'http://127.0.0.1:9/' })
    step(`created a webhook endpoint: ${id}`)
    try {
      await bursar.webhookEndpoints.test({ id })
      step(`tested ${id}`)
    } finally {
      await bursar.webhookEndpoints.remove({ id })
      step(`removed ${id}`)
    }
  },
}

/** Why a type cannot be played. */
export const reasons: Readonly<Record<string, string>> = {
  'transfer.failed': 'the chain of the sandbox executes every transfer that the gateway sends.',
  'deposit.reversed': 'the bank and the chain of the sandbox take nothing back.',
  'relay.confirmed': 'it needs a payment signed by its payer; see POST /api/transfers/gasless.',
  'relay.failed': 'the gateway sends only payments that the chain would execute.',
  'approval.expired': 'a request expires only when its time is over.',
  'order.expired': 'an order expires only when the market closes.',
  'channel.opened': 'no seller of the sandbox sells by channel.',
  'channel.closed': 'no seller of the sandbox sells by channel.',
  'purchase.failed': 'the gateway signs no payment that it expects to fail.',
  'key.updated': 'scopes and policies of agents are changed by their owner, on PATCH /api/agents/keys/{id}.',
  'security.factor_added': 'it would change how you sign in; add a passkey in the browser.',
  'security.factor_removed': 'it would change how you sign in; remove a passkey in the browser.',
  'security.locked': 'it would lock your account, and end this session.',
  'security.unlocked': 'only a recovery unlocks an account.',
  'security.signed_in': 'run "bursar login" while "bursar listen" runs.',
  'kyc.updated': 'it would change what is known of you; see POST /api/compliance/kyc.',
  'wallet.shortfall': 'the chain of the sandbox never holds less than the books.',
  'webhook.disabled': 'an endpoint is disabled only after failing for two days.',
}
