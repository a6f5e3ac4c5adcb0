/** People with a guest's wallet: they open keys and cards, send money, decide on approvals, change policies, pause and revoke. */
import type { Kind } from '../kind.ts'
import { type Account, computeTotp, formatCents, items, type Scene, succeed, text } from '../scene.ts'
import type { Seeded } from '../seeded.ts'

const MAX_KEYS = 5
const PER_TRANSACTION_CENTS = 600
/** More cash than anybody has, and less than is reviewed. */
const MORE_CENTS = 400_000

/** Opens an account with two keys, one of which asks above 3 USD. */
export async function openAccount(scene: Scene, random: Seeded): Promise<void> {
  const guest = await succeed(scene.call(random, 'POST', '/api/auth/guest'))
  const bearer = { authorization: `Bearer ${text(guest.sessionToken)}` }
  const headers = bearer
  const { accounts } = await succeed(scene.call(random, 'GET', '/api/banking', { headers }))
  const { cards } = await succeed(scene.call(random, 'GET', '/api/cards', { headers }))
  const wallet = await succeed(scene.call(random, 'GET', '/api/wallets', { headers }))
  const enrolled = await succeed(
    scene.call(random, 'POST', '/api/security/mfa', { headers, body: { action: 'enroll' } }),
  )
  const totpSecret = new URL(text(enrolled.otpauthUri)).searchParams.get('secret') ?? ''
  const code = computeTotp(totpSecret, new Date(scene.world.scheduler.now))
  await scene.call(random, 'POST', '/api/security/mfa', { headers, body: { action: 'activate', code } })
  const account: Account = {
    id: text((guest.account as Record<string, unknown>).id),
    bearer,
    totpSecret,
    walletAddress: text(wallet.safeAddress),
    bankAccountId: text(items(accounts)[0]?.id),
    keys: [],
    cardIds: [text(items(cards)[0]?.id)],
    recipientId: '',
    capCents: null,
    isLocked: false,
  }
  await openKey(scene, random, account, { dailyCents: 500 + random.below(1_500) })
  await openKey(scene, random, account, { dailyCents: 500 + random.below(4_000), asksAbove: '3' })
  if (random.chance(0.5)) {
    const capCents = 500 + random.below(2_500)
    const cap = { headers, body: { dailyBudget: { max: formatCents(capCents) } } }
    await succeed(scene.call(random, 'PUT', '/api/agents/policy', cap))
    account.capCents = capCents
  }
  scene.accounts.push(account)
}

async function openKey(
  scene: Scene,
  random: Seeded,
  account: Account,
  { dailyCents, asksAbove }: { dailyCents: number; asksAbove?: string },
): Promise<boolean> {
  const headers = account.bearer
  const policy = {
    perTransaction: { max: formatCents(Math.min(PER_TRANSACTION_CENTS, dailyCents)) },
    dailyBudget: { max: formatCents(dailyCents) },
    categories: { allow: ['x402', 'transfer', 'card', 'invest', 'payout', 'swap'] },
    ...(asksAbove === undefined ? {} : { approval: { above: asksAbove } }),
  }
  const scopes = [
    'purchases:pay',
    'wallets:read',
    'wallets:transfer',
    'investing:trade',
    'swaps:execute',
    'agents:delegate',
  ]
  const made = await scene.call(random, 'POST', '/api/developer/keys', {
    headers,
    body: { name: 'Simulated', scopes, policy },
    tries: 1,
  })
  if (made?.body.code === 'step_up_required') {
    await stepUp(scene, random, account)
    return false
  }
  if (made?.body.key === undefined) return false
  const key = {
    id: text(made.body.id),
    bearer: { authorization: `Bearer ${text(made.body.key)}` },
    dailyCents,
    above: [],
    isStopped: false,
  }
  account.keys.push(key)
  const card = await scene.call(random, 'POST', '/api/cards', {
    headers,
    body: { agentId: key.id, limits: { daily: '100' } },
    tries: 1,
  })
  if (typeof card?.body.id === 'string') account.cardIds.push(card.body.id)
  return true
}

/** Sends USDC to an address of its own; sometimes a twin of the call goes to another gateway at once. */
export async function sendTransfer(
  scene: Scene,
  random: Seeded,
  {
    headers,
    cents,
    signature,
    chain,
  }: { headers: Record<string, string>; cents: number; signature?: string; chain?: string },
): Promise<boolean> {
  const row = scene.newTransfer(cents, chain)
  scene.transfers.push(row)
  const { id, to } = row
  row.users.push(text(headers.authorization))
  const call = {
    headers: { ...headers, 'idempotency-key': id },
    body: {
      ...{ destination: to, amount: formatCents(cents), token: 'USDC' },
      ...(signature && { signature }),
      ...(chain && { chain, from: 'any' }),
    },
  }
  const hasTwin = random.chance(0.2)
  const [answer, twin] = await Promise.all([
    scene.call(random, 'POST', '/api/wallets/transfer', call),
    hasTwin ? scene.call(random, 'POST', '/api/wallets/transfer', call) : undefined,
  ])
  row.answer = answer
  if (answer?.status === 200 && twin?.status === 200 && answer.body.transferId !== twin.body.transferId)
    scene.found.push(`${id}: two transfers for one idempotency key: ${answer.text} and ${twin.text}`)
  return answer?.status === 200
}

export const owners: readonly Kind[] = [
  {
    name: 'transfer by the owner',
    weight: 6,
    run: async (scene, random) => {
      const { id, bearer, isLocked } = { ...random.oneOf(scene.accounts) }
      const cents = 1 + random.below(3_000)
      const isSent = await sendTransfer(scene, random, { headers: bearer, cents, signature: 'sandbox' })
      if (isSent && isLocked) scene.found.push(`A locked account spends nothing. – ${id} sent a transfer`)
      return isSent
    },
  },
  {
    name: 'approval',
    weight: 5,
    run: async (scene, random) => {
      const account = random.oneOf(scene.accounts)
      const { bearer: headers } = account
      const listed = await scene.call(random, 'GET', '/api/approvals', { headers, tries: 3 })
      const waiting = items(listed?.body.approvals).filter(({ status }) => status === 'pending')
      const [chosen] = waiting.length === 0 ? [] : [random.oneOf(waiting)]
      if (chosen === undefined) return false
      const decision = random.oneOf(['approve', 'approve', 'reject'])
      const decide = () =>
        scene.call(random, 'POST', `/api/approvals/${text(chosen.approvalId)}`, {
          headers,
          body: { decision },
          tries: 6,
        })
      // Two windows of one person, at once.
      const [answer] = await Promise.all([decide(), random.chance(0.5) ? decide() : undefined])
      if (answer?.body.code === 'step_up_required') await stepUp(scene, random, account)
      return answer?.status === 200
    },
  },
  {
    name: 'pause or revoke',
    weight: 2,
    run: async (scene, random) => {
      const account = random.oneOf(scene.accounts)
      const roots = account.keys.filter(({ above }) => above.length === 0)
      if (roots.length >= MAX_KEYS) return false
      const { bearer: headers } = account
      const [key, isPause] = [random.oneOf(roots), random.chance(0.5)]
      const known = [...account.keys]
      const answer = isPause
        ? await scene.call(random, 'POST', '/api/agents/pause', { headers, body: {} })
        : await scene.call(random, 'DELETE', `/api/developer/keys/${key.id}`, { headers })
      if (answer?.body.code === 'step_up_required') await stepUp(scene, random, account)
      if (answer?.status === 200)
        for (const one of known)
          if (isPause || one === key || one.above.includes(key.id)) one.isStopped = true
      return openKey(scene, random, account, { dailyCents: 500 + random.below(2_000) })
    },
  },
  {
    name: 'lock',
    weight: 1,
    // Nobody opens it again, so it happens in one history of three, and to one account.
    run: async (scene, random) => {
      if (scene.world.seed % 3 !== 0 || scene.accounts.some(({ isLocked }) => isLocked)) return false
      const account = random.oneOf(scene.accounts)
      const known = [...account.keys]
      const call = { headers: account.bearer, body: {} }
      const answer = await scene.call(random, 'POST', '/api/security/lock', call)
      if (answer?.status !== 200) return false
      account.isLocked = true
      for (const key of known) key.isStopped = true
      return true
    },
  },
  {
    name: 'payout',
    weight: 4,
    run: async (scene, random) => {
      const account = random.oneOf(scene.accounts)
      if (!(await hasRecipient(scene, random, account))) return false
      const answer = await payOut(scene, random, account, 100 + random.below(800))
      return answer?.status === 200
    },
  },
  {
    name: 'payouts of all cash',
    weight: 1,
    // A person asks for too much, is told what there is, and sends that from two windows at once.
    run: async (scene, random) => {
      const account = random.oneOf(scene.accounts)
      if (!(await hasRecipient(scene, random, account))) return false
      const asked = await payOut(scene, random, account, MORE_CENTS)
      const { available } = asked?.body ?? {}
      if (typeof available !== 'string' || Number(available) === 0) return false
      const cents = Math.round(Number(available) * 100)
      const answers = await Promise.all([1, 2].map(() => payOut(scene, random, account, cents)))
      return answers.filter((answer) => answer?.status === 200).length === 1
    },
  },
  {
    name: 'order',
    weight: 4,
    run: async (scene, random) => {
      const { bearer: headers } = random.oneOf(scene.accounts)
      const answer = await scene.call(random, 'POST', '/api/investing/order', {
        headers: { ...headers, 'idempotency-key': scene.nextName('order') },
        body: {
          symbol: random.oneOf(['VTI', 'AAPL']),
          side: random.oneOf(['buy', 'buy', 'sell']),
          notional: String(1 + random.below(20)),
        },
      })
      return answer?.status === 200
    },
  },
]

const recipient = {
  currency: 'USD',
  name: 'Grace Hopper',
  country: 'US',
  account: { routingNumber: '021000021', accountNumber: '123456789' },
}

async function hasRecipient(scene: Scene, random: Seeded, account: Account): Promise<boolean> {
  const { bearer: headers } = account
  if (account.recipientId === '') {
    const made = await scene.call(random, 'POST', '/api/banking/recipients', { headers, body: recipient })
    if (typeof made?.body.id === 'string') account.recipientId = made.body.id
  }
  return account.recipientId !== ''
}

function payOut(scene: Scene, random: Seeded, { bearer, recipientId }: Account, cents: number) {
  return scene.call(random, 'POST', '/api/banking/payouts', {
    headers: { ...bearer, 'idempotency-key': scene.nextName('payout') },
    body: { recipientId, amount: formatCents(cents) },
  })
}

/** Shows the second factor again, once its code has changed. */
async function stepUp(scene: Scene, random: Seeded, { bearer, totpSecret }: Account): Promise<void> {
  await scene.pause(30_000)
  const code = computeTotp(totpSecret, new Date(scene.world.scheduler.now))
  const body = { action: 'verify', code }
  await scene.call(random, 'POST', '/api/security/mfa', { headers: bearer, body, tries: 3 })
}
