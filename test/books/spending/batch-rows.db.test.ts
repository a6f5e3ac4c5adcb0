/** Spends decided as a batch leave exactly the rows that they leave when decided one by one. */
import { expect, it } from 'vitest'
import { reserveSpend, reserveSpends } from '../../../src/books/spending/reserve.ts'
import type { SpendRequest, TransferRow } from '../../../src/books/spending/spend-request.ts'
import { newId } from '../../../src/core/base/ids.ts'
import type { Connection } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey, place, unlimited } from './scene.ts'

const TABLES = [
  'balance',
  'budget_usage',
  'decision',
  'event',
  'idempotency',
  'outflow_slot',
  'posting',
  'reservation',
  'signature_nonce',
  'transfer',
] as const

/** Columns that differ by themselves: the number of the transaction. */
const OWN_COLUMNS = new Set(['written_by'])

const velocity = (seconds: number) => ({
  rule: 'velocity' as const,
  seconds,
  usdMicros: 1n,
  maxUsdMicros: 1_000n,
  minCount: 1,
  isJudged: true,
})

const buildTransfer = (units: bigint): TransferRow => ({
  id: newId('tx', noon),
  token: 'USDC',
  units,
  destination: '0x000000000000000000000000000000000000dead',
  chain: place,
  authorization: { kind: 'gateway' },
  signer: 'sandbox',
  payer: 'wallet',
  validUntil: noon,
  mac: 'a'.repeat(64),
  intentId: null,
  at: noon,
})

/** A spend with all that a signed transfer has. */
const signedSpend = (scene: Scene, units: bigint, place: number): SpendRequest =>
  buildSpend(scene, units, {
    transfer: buildTransfer(units),
    mac: 'b'.repeat(64),
    windows: [velocity(3_600), velocity(86_400)],
    idempotency: { principal: scene.keyId, key: `call ${place}`, fingerprint: 'print' },
    nonce: { value: `nonce ${place}`, expiresAt: noon },
    counterparty: '0xDEAD',
  })

interface Scene {
  readonly accountId: string
  readonly keyId: string
}

onBothEngines('the rows of a batch', (database) => {
  const open = async (): Promise<Scene> => {
    const accountId = await openAccount(database(), 100n)
    return { accountId, keyId: await openKey(database(), accountId) }
  }

  /** Each kind of spend, among others that must be decided by themselves. */
  const buildRequests = (scene: Scene): readonly SpendRequest[] => {
    const twin = signedSpend(scene, 3n, 9)
    return [
      signedSpend(scene, 3n, 0),
      signedSpend(scene, 4n, 1),
      buildSpend(scene, 5n, { place: null }),
      twin,
      // Its key is taken by the spend before it, in the same batch.
      { ...signedSpend(scene, 3n, 9), nonce: undefined },
      buildSpend(scene, 2n, { transfer: null, usdMicros: null }),
      buildSpend(scene, 6n, { needsApproval: true }),
      buildSpend(scene, 7n, { isApproved: true }),
      buildSpend(scene, 1_000n),
      buildSpend({ ...scene, keyId: null }, 8n, { usdMicros: null }),
      buildSpend(scene, 9n, {
        key: { id: scene.keyId, policyVersion: 1, limits: { ...unlimited, dailyMaxMicros: 30n } },
      }),
      signedSpend(scene, 10n, 2),
    ]
  }

  it('are those of single calls', async () => {
    const alone = await open()
    const together = await open()
    const first = buildRequests(alone)
    const singles = []
    for (const request of first) singles.push(await reserveSpend(database(), request))
    const second = buildRequests(together)
    const batch = await reserveSpends(database(), second)
    expect(batch.map(({ verdict }) => verdict)).toEqual(singles.map(({ verdict }) => verdict))
    expect(new Set(batch.map(({ verdict }) => verdict)).size).toBe(5)
    const rows = await readRows(database(), alone, first)
    expect(rows.filter((row) => row.startsWith('transfer '))).toHaveLength(4)
    expect(await readRows(database(), together, second)).toEqual(rows)
  })
})

/** All rows that name the scene, as text that does not depend on its ids. */
async function readRows(
  database: Connection,
  { accountId, keyId }: Scene,
  requests: readonly SpendRequest[],
): Promise<readonly string[]> {
  const names = new Map([
    [accountId, 'the account'],
    [keyId, 'the key'],
    ...requests.flatMap(({ decisionId, transfer }, place): [string, string][] => [
      [decisionId, `decision ${place}`],
      ...(transfer === undefined || transfer === null
        ? []
        : [[transfer.id, `transfer ${place}`] satisfies [string, string]]),
    ]),
  ])
  const found: string[] = []
  for (const table of TABLES) {
    const rows = await database.call<{ row: Record<string, unknown> }>(
      { name: `rows_${table}`, text: `select to_jsonb(r) as row from ${table} r` },
      [],
    )
    for (const { row } of rows) {
      const own = Object.entries(row).filter(([name]) => !OWN_COLUMNS.has(name))
      let text = `${table} ${JSON.stringify(Object.fromEntries(own))}`
      const before = text
      for (const [id, name] of names) text = text.replaceAll(id, name)
      // What is left names the deposit that gave the account its money.
      if (text !== before)
        found.push(
          text.replaceAll(/tx_[0-9a-z]{26}/g, 'the deposit').replaceAll(/evt_[0-9a-z]{26}/g, 'an event'),
        )
    }
  }
  return found.sort()
}
