/**
 * Scenes of three sessions that want the same money, each with what must hold however their statements interleave.
 * Ids are fixed, because locks are taken in their order.
 */
import { screeningViolation } from '../../../policies/aml/screening.ts'
import { available, external, held } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { type Posting, post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend, reserveSpends } from '../../../src/books/spending/reserve.ts'
import { decideReview } from '../../../src/books/spending/reviews.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { ownedKinds, revokeKey } from '../../../src/people/identity/keys/owned-keys.ts'
import { lockAccount } from '../../../src/people/identity/locks.ts'
import type { Database } from '../../../src/storage/database.ts'
import { buildSpend, capAccount, noon, place, readUsage, unlimited } from '../../books/spending/scene.ts'
import { settlePart } from '../../books/spending/take-part.ts'
import type { Run, Task } from './conductor.ts'

export interface Scene {
  /** What holds, as a sentence without its subject's end: the name of its test. */
  readonly claim: string
  /** Writes the rows of the scene. */
  readonly prepare: (database: Database) => Promise<Play>
}

/** @property findViolation returns how the answers or the rows violate the claim; null if they do not. */
export interface Play {
  readonly tasks: readonly Task[]
  readonly findViolation: (answers: readonly unknown[]) => Promise<string | null>
}

/** Returns how a run violates its scene: by what it was asked, by a deadlock or a failed task, or in the books; null: it does not. */
export async function findViolation(database: Database, play: Play, run: Run): Promise<string | null> {
  if (run.isDeadlocked) return 'sessions wait for each other in a circle'
  for (const answer of run.answers)
    if (answer.status === 'rejected') return `a task failed: ${describeError(answer.reason)}`
  const violation = await play.findViolation(
    run.answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : null)),
  )
  if (violation !== null) return violation
  const { balanced, drifts } = await trialBalance(database)
  if (balanced) return null
  const texts = drifts.map(
    ({ account, materialized, posted }) => `${account} has ${materialized}, its postings ${posted}`,
  )
  return `the books do not balance: ${texts.join('; ')}`
}

function describeError(reason: unknown): string {
  if (reason instanceof Failure && reason.cause instanceof Error)
    return `${reason.message} ${reason.cause.message}`
  return reason instanceof Error ? reason.message : String(reason)
}

export const ADA = 'acct_ada'
const BOB = 'acct_bob'
export const KEY = 'key_one'
const OTHER_KEY = 'key_two'
const gateway = { kind: 'gateway' }
export const adasKey = { accountId: ADA, keyId: KEY }
export const adaHerself = { accountId: ADA, keyId: null }
const bobHimself = { accountId: BOB, keyId: null }

/** Opens an account with money. @param units of USDC. */
export async function openOwner(database: Database, id: string, units: bigint): Promise<void> {
  await database.kysely.insertInto('account').values({ id, display_name: id, created_at: noon }).execute()
  await move(database, `fund ${id}`, { source: external(place), destination: available(id, place) }, units)
}

export async function openKeys(database: Database, ...ids: readonly string[]): Promise<void> {
  for (const id of ids)
    await database.kysely
      .insertInto('access_key')
      .values({ id, account_id: ADA, kind: 'agent', name: id, scopes: [], created_at: noon })
      .execute()
}

/** Posts USDC. */
function move(database: Database, id: string, accounts: Omit<Posting, 'money'>, units: bigint) {
  const posting = { ...accounts, money: { asset: 'USDC', units } } as const
  return post(database, { id, kind: 'test', reference: 'test', at: noon, postings: [posting] })
}

/** A spend under a fixed decision. */
export function planSpend(
  spender: Parameters<typeof buildSpend>[0],
  units: bigint,
  decisionId: string,
  changes: Partial<SpendRequest> = {},
): SpendRequest {
  return buildSpend(spender, units, { decisionId, ...changes })
}

/** Units of all spends whose money is or was held, and was not released. */
async function sumSpent(database: Database): Promise<bigint> {
  const rows = await database.kysely
    .selectFrom('reservation')
    .select('units')
    .where('status', '!=', 'released')
    .execute()
  return rows.reduce((sum, { units }) => sum + units, 0n)
}

async function readMoney(database: Database, accountId: string) {
  const [money] = await balances(database, accountId)
  return { available: money?.available ?? 0n, held: money?.held ?? 0n }
}

/** Names the verdicts of a run, sorted: which session gets which is the seed's choice. */
export function listVerdicts(answers: readonly unknown[]): string {
  return answers.map(readVerdict).sort().join(', ')
}

function readVerdict(answer: unknown): string {
  const isRow = typeof answer === 'object' && answer !== null && 'verdict' in answer
  return String(isRow ? answer.verdict : answer)
}

/** Returns the violation of a fact unless it holds. */
export function unless(holds: boolean, violation: string): string | null {
  return holds ? null : violation
}

const dayBudget: Scene = {
  claim: 'a key spends no more than the budget of its day',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    const spender = { ...adasKey, limits: { ...unlimited, dailyMaxMicros: 100n } }
    const spend = (decisionId: string, units: bigint): Task => {
      return (session) => reserveSpend(session, planSpend(spender, units, decisionId))
    }
    return {
      tasks: [spend('dec_1', 60n), spend('dec_2', 60n), spend('dec_3', 30n)],
      findViolation: async () => {
        const { usedMicros } = await readUsage(database, KEY)
        const spent = await sumSpent(database)
        return unless(
          spent <= 100n && usedMicros === spent,
          `spent ${spent} of a budget of 100, counted as ${usedMicros}`,
        )
      },
    }
  },
}

const ownerCap: Scene = {
  claim: 'the keys of an owner spend no more than the cap over all of them',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY, OTHER_KEY)
    await capAccount(database, ADA, 100n)
    const spend = (decisionId: string, keyId: string): Task => {
      return (session) => reserveSpend(session, planSpend({ accountId: ADA, keyId }, 60n, decisionId))
    }
    return {
      tasks: [spend('dec_1', KEY), spend('dec_2', OTHER_KEY), spend('dec_3', OTHER_KEY)],
      findViolation: async () => {
        const spent = await sumSpent(database)
        return unless(spent === 60n, `spent ${spent}, where one spend of 60 fits a cap of 100`)
      },
    }
  },
}

const wallet: Scene = {
  claim: 'a balance pays for a spend or for a posting, and keeps what arrives meanwhile',
  prepare: async (database) => {
    await openOwner(database, ADA, 100n)
    const out = { source: available(ADA, place), destination: external(place) }
    const into = { source: external(place), destination: available(ADA, place) }
    return {
      tasks: [
        (session) => reserveSpend(session, planSpend(adaHerself, 70n, 'dec_1')),
        (session) =>
          move(session, 'out', out, 70n).catch((error: unknown) => {
            if (error instanceof Failure && error.code === 'insufficient_funds') return error.code
            throw error
          }),
        (session) => move(session, 'in', into, 30n),
      ],
      findViolation: async (answers) => {
        const money = await readMoney(database, ADA)
        const paid = [readVerdict(answers[0]) === 'allow', answers[1] === 'posted'].filter(Boolean).length
        return unless(
          paid === 1 && money.available === 60n,
          `${paid} of two payments of 70 were made from 100 and 30, and ${money.available} are left`,
        )
      },
    }
  },
}

const twins: Scene = {
  claim: 'calls with one idempotency key are one spend',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    const idempotency = { principal: KEY, key: 'twin', fingerprint: 'same' }
    const spend = (decisionId: string): Task => {
      return (session) => reserveSpend(session, planSpend(adasKey, 60n, decisionId, { idempotency }))
    }
    return {
      tasks: [spend('dec_1'), spend('dec_2'), spend('dec_3')],
      findViolation: async (answers) => {
        const [spent, verdicts] = [await sumSpent(database), listVerdicts(answers)]
        return unless(
          spent === 60n && verdicts === 'allow, repeated, repeated',
          `three twins of 60 spent ${spent} and got ${verdicts}`,
        )
      },
    }
  },
}

const end: Scene = {
  claim: 'a spend is settled or released, once',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    for (const decisionId of ['dec_1', 'dec_2'])
      await reserveSpend(database, planSpend(adasKey, 60n, decisionId))
    const settle: Task = (session) =>
      settleSpend(session, { decisionId: 'dec_1', destination: external(place), at: noon })
    return {
      tasks: [settle, (session) => releaseSpend(session, { decisionId: 'dec_1', at: noon }), settle],
      findViolation: async (answers) => {
        const verdicts = listVerdicts(answers)
        const isReleased = verdicts.includes('released') && !verdicts.includes('already_released')
        const isSettled = verdicts === 'already_settled, already_settled, settled'
        const isOnce = isSettled || verdicts === 'already_released, already_released, released'
        const money = await readMoney(database, ADA)
        const { usedMicros } = await readUsage(database, KEY)
        const [left, used] = isReleased || !isSettled ? [940n, 60n] : [880n, 120n]
        return unless(
          isOnce && money.held === 60n && money.available === left && usedMicros === used,
          `${verdicts}: ${money.available} are available, ${money.held} held, ${usedMicros} counted`,
        )
      },
    }
  },
}

const parts: Scene = {
  claim: 'the parts of a spend and its rest are together its hold',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    for (const decisionId of ['dec_1', 'dec_2'])
      await reserveSpend(database, planSpend(adasKey, 100n, decisionId))
    const take = (id: string): Task => {
      const destination = external(place)
      return (session) => settlePart(session, { decisionId: 'dec_1', id, units: 60n, destination, at: noon })
    }
    return {
      tasks: [
        take('part 1'),
        take('part 2'),
        (session) => releaseSpend(session, { decisionId: 'dec_1', at: noon }),
      ],
      findViolation: async (answers) => {
        const money = await readMoney(database, ADA)
        const taken = answers.filter((answer) => answer === 'taken').length
        const total = money.available + money.held
        return unless(
          taken <= 1 && money.held === 100n && total === 1_000n - 60n * BigInt(taken),
          `${listVerdicts(answers)}: ${money.available} are available, ${money.held} held`,
        )
      },
    }
  },
}

const lock: Scene = {
  claim: 'an account spends nothing once it is locked',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    let heldAtLock = 0n
    return {
      tasks: [
        (session) =>
          session.transaction(async (connection) => {
            await lockAccount(connection, { accountId: ADA, reason: 'person', at: noon })
            const row = await connection.kysely
              .selectFrom('balance')
              .select('units')
              .where('account', '=', held(ADA, place))
              .executeTakeFirst()
            heldAtLock = row?.units ?? 0n
          }),
        (session) => reserveSpend(session, planSpend(adasKey, 60n, 'dec_1')),
        (session) => reserveSpend(session, planSpend(adaHerself, 60n, 'dec_2')),
      ],
      findViolation: async () => {
        const money = await readMoney(database, ADA)
        return unless(money.held === heldAtLock, `${money.held} are held, and ${heldAtLock} at the lock`)
      },
    }
  },
}

const revocation: Scene = {
  claim: 'a key spends nothing in calls that begin after its revocation, whatever their caller has read',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    let isRevoked = false
    const spend = (decisionId: string): Task => {
      return async (session) => {
        const isTooLate = isRevoked
        const { verdict } = await reserveSpend(session, planSpend(adasKey, 60n, decisionId))
        return isTooLate && verdict === 'allow' ? 'too late' : verdict
      }
    }
    return {
      tasks: [
        async (session) => {
          await revokeKey(session, { accountId: ADA, kinds: ownedKinds, id: KEY })
          isRevoked = true
        },
        spend('dec_1'),
        spend('dec_2'),
      ],
      findViolation: async (answers) =>
        unless(!answers.includes('too late'), 'a spend that began after the revocation was allowed'),
    }
  },
}

const batches: Scene = {
  claim: 'batches over two owners never wait for each other in a circle',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openOwner(database, BOB, 1_000n)
    const money = { asset: 'USDC', units: 1n } as const
    const [ada, bob] = [available(ADA, place), available(BOB, place)]
    const postings = [
      { source: bob, destination: ada, money },
      { source: ada, destination: bob, money },
    ]
    return {
      tasks: [
        (session) =>
          reserveSpends(session, [planSpend(adaHerself, 60n, 'dec_1'), planSpend(bobHimself, 60n, 'dec_2')]),
        (session) =>
          reserveSpends(session, [planSpend(bobHimself, 60n, 'dec_3'), planSpend(adaHerself, 60n, 'dec_4')]),
        (session) => post(session, { id: 'both', kind: 'test', reference: 'test', at: noon, postings }),
      ],
      findViolation: async () => {
        const spent = await sumSpent(database)
        return unless(spent === 240n, `four spends of 60 spent ${spent}`)
      },
    }
  },
}

const twinBatches: Scene = {
  claim: 'batches of the same calls in another order are one, and never wait for each other in a circle',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    const call = (key: string, decisionId: string) =>
      planSpend(adaHerself, 60n, decisionId, {
        idempotency: { principal: ADA, key, fingerprint: 'same' },
      })
    return {
      tasks: [
        (session) => reserveSpends(session, [call('a', 'dec_1'), call('b', 'dec_2')]),
        (session) => reserveSpends(session, [call('b', 'dec_3'), call('a', 'dec_4')]),
        (session) => reserveSpend(session, call('b', 'dec_5')),
      ],
      findViolation: async () => {
        const spent = await sumSpent(database)
        return unless(spent === 120n, `two calls of 60, sent in batches and again, spent ${spent}`)
      },
    }
  },
}

const transfers: Scene = {
  claim: 'transfers between two owners end once, in batches that never wait for each other in a circle',
  prepare: async (database) => {
    for (const owner of [ADA, BOB]) {
      await openOwner(database, owner, 1_000n)
      await database.kysely
        .insertInto('wallet')
        .values({
          account_id: owner,
          address: `0x${owner}`,
          chain: place,
          created_at: noon,
          origin: JSON.stringify(gateway),
          owner: JSON.stringify(gateway),
        })
        .execute()
    }
    await openKeys(database, KEY)
    const spenders = { dec_1: adasKey, dec_2: bobHimself, dec_3: bobHimself, dec_4: adasKey }
    for (const [decisionId, spender] of Object.entries(spenders))
      await reserveSpend(database, planSpend(spender, 60n, decisionId))
    const outcome = (decision: string, payee: string, isConfirmed: boolean) => ({
      ...{ decision, transfer: 'none', chain: place, destination: `0x${payee}`, is_confirmed: isConfirmed },
      ...{ hash: null, failure: null, code: null, at: noon },
    })
    const finish = (...outcomes: readonly ReturnType<typeof outcome>[]): Task => {
      return (session) => session.call(finishBatch, [JSON.stringify(outcomes)])
    }
    return {
      tasks: [
        finish(outcome('dec_1', BOB, true), outcome('dec_2', ADA, true)),
        finish(outcome('dec_3', ADA, true), outcome('dec_4', BOB, false)),
        finish(outcome('dec_2', ADA, true), outcome('dec_1', BOB, true)),
      ],
      findViolation: async () => {
        const [ada, bob] = [await readMoney(database, ADA), await readMoney(database, BOB)]
        return unless(
          ada.held + bob.held === 0n && ada.available === 1_060n && bob.available === 940n,
          `Ada has ${ada.available} and ${ada.held} held, Bob ${bob.available} and ${bob.held}`,
        )
      },
    }
  },
}

const finishBatch = { name: 'transfer_finish_batch', text: 'select verdict from transfer_finish_batch($1)' }

const approval: Scene = {
  claim: 'an approval lets one call pass',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    await database.kysely
      .insertInto('approval')
      .values({
        id: 'appr_1',
        account_id: ADA,
        key_id: KEY,
        operation: 'wallets.transfer',
        input: '{}',
        fingerprint: 'same',
        violations: '[]',
        status: 'approved',
        created_at: noon,
        expires_at: noon,
        decided_at: noon,
      })
      .execute()
    const spend = (decisionId: string): Task => {
      const changes = { isApproved: true, approvalId: 'appr_1' }
      return (session) => reserveSpend(session, planSpend(adasKey, 60n, decisionId, changes))
    }
    return {
      tasks: [spend('dec_1'), spend('dec_2'), spend('dec_3')],
      findViolation: async (answers) => {
        const [spent, verdicts] = [await sumSpent(database), listVerdicts(answers)]
        return unless(
          spent === 60n && verdicts === 'allow, repeated, repeated',
          `one approval of 60 spent ${spent}: ${verdicts}`,
        )
      },
    }
  },
}

const review: Scene = {
  claim: 'a released AML review lets one spend pass',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openOwner(database, BOB, 1n)
    const subject = 'ada pays sixty'
    const screened = planSpend(adaHerself, 60n, 'dec_1', {
      violations: [screeningViolation({ result: 'review', lists: ['velocity'] })],
      review: { subject, released: null },
    })
    await reserveSpend(database, screened)
    await decideReview(
      { database, log: silentLog },
      { id: 'rev_1', decidedBy: BOB, status: 'released', reason: 'Known.', at: noon },
    )
    const spend = (decisionId: string): Task => {
      const changes = { review: { subject, released: 'rev_1' } }
      return (session) => reserveSpend(session, planSpend(adaHerself, 60n, decisionId, changes))
    }
    return {
      tasks: [spend('dec_2'), spend('dec_3'), spend('dec_4')],
      findViolation: async (answers) => {
        const [spent, verdicts] = [await sumSpent(database), listVerdicts(answers)]
        return unless(
          spent === 60n && verdicts === 'allow, deny, deny',
          `one review of 60 spent ${spent}: ${verdicts}`,
        )
      },
    }
  },
}

const amlWindow: Scene = {
  claim: 'the spends of an AML window stay below its maximum',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    const amounts = { seconds: 3_600, usdMicros: 60n, maxUsdMicros: 150n, minCount: 1 }
    const windows = [{ rule: 'velocity', ...amounts, isJudged: true } as const]
    const spend = (decisionId: string): Task => {
      return (session) => reserveSpend(session, planSpend(adaHerself, 60n, decisionId, { windows }))
    }
    await reserveSpend(database, planSpend(adaHerself, 60n, 'dec_1', { windows }))
    return {
      tasks: [spend('dec_2'), spend('dec_3'), spend('dec_4')],
      findViolation: async () => {
        const spent = await sumSpent(database)
        return unless(spent === 120n, `spent ${spent}, where two spends of 60 fit a window of 150`)
      },
    }
  },
}

const ledger: Scene = {
  claim: 'a transaction of the ledger is posted once, also where the money lasts for one alone',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openOwner(database, BOB, 100n)
    const send = (owner: string) => ({ source: available(owner, place), destination: external(place) })
    const postTwice: Task = async (session) =>
      `${await move(session, 'plenty', send(ADA), 60n)} ${await move(session, 'scarce', send(BOB), 60n)}`
    return {
      tasks: [postTwice, postTwice, postTwice],
      findViolation: async (answers) => {
        const [ada, bob] = [await readMoney(database, ADA), await readMoney(database, BOB)]
        return unless(
          ada.available === 940n && bob.available === 40n,
          `${answers.join(', ')}: ${ada.available} of 1000 and ${bob.available} of 100 are left`,
        )
      },
    }
  },
}

/** Scenes by name. */
export const spendingScenes = {
  dayBudget,
  ownerCap,
  wallet,
  twins,
  end,
  parts,
  lock,
  revocation,
  batches,
  twinBatches,
  transfers,
  approval,
  review,
  amlWindow,
  ledger,
} as const
