/** Money of an escrow that no purchase holds goes back to the wallet it is opened for, whatever the database says later. */
import { beforeAll, expect, it } from 'vitest'
import { available, escrowPlace, external } from '../../../../src/books/ledger/accounts.ts'
import { balances } from '../../../../src/books/ledger/balances.ts'
import { post } from '../../../../src/books/ledger/post.ts'
import { createDecisionAuthenticator } from '../../../../src/books/spending/authenticate.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import {
  beginPullsOfHolds,
  type EscrowParts,
  keepEscrows,
} from '../../../../src/rails/wallets/escrow/escrow.ts'
import { buildEscrow } from '../../../../src/rails/wallets/store.ts'
import { onBothEngines } from '../../../engines.ts'
import { openFundedAccount, sendingDependencies } from '../scene.ts'

const running = new AbortController().signal
const full = 1_000_000_000n

onBothEngines('the money of an escrow', (database) => {
  let parts: EscrowParts
  beforeAll(async () => {
    const chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    const sending = sendingDependencies(database(), chain)
    const { dataKey } = sending.settings
    const unstoredCodes = new Map<string, string>()
    parts = { ...sending, vouch: createDecisionAuthenticator({ dataKey, log: silentLog, unstoredCodes }) }
  })
  /** An account with 70 units in its escrow. */
  const open = async () => {
    const { chain } = parts
    const { accountId, address } = await openFundedAccount(parts)
    await beginPullsOfHolds(parts, accountId, systemClock())
    const escrow = await chain.walletAddress(buildEscrow(accountId, null))
    await chain.mint([{ token: 'USDC', to: escrow, units: 70n }])
    await post(database(), {
      id: `fund:${accountId}`,
      kind: 'deposit',
      reference: accountId,
      at: systemClock(),
      postings: [
        {
          source: external(chain.name),
          destination: available(accountId, escrowPlace(chain.name)),
          money: { asset: 'USDC', units: 70n },
        },
      ],
    })
    const readBooked = async (place: string) =>
      (await balances(database(), accountId)).find((row) => row.place === place && row.asset === 'USDC')
        ?.available ?? 0n
    return { accountId, address, escrow, readBooked }
  }
  const readAlarms = (escrow: string) =>
    database()
      .kysely.selectFrom('alarm')
      .select(['reason', 'resolved_at'])
      .where('object_id', '=', escrow.toLowerCase())
      .execute()

  it('goes back to the wallet', async () => {
    const { address, escrow, readBooked } = await open()
    await keepEscrows(parts, running)
    expect([await readBooked(escrowPlace(parts.chain.name)), await readBooked(parts.chain.name)]).toEqual([
      0n,
      full + 70n,
    ])
    expect(await parts.chain.readBalance('USDC', address)).toBe(full + 70n)
    expect(await readAlarms(escrow)).toEqual([])
  })

  it('goes nowhere else, and the others go on', async () => {
    const { accountId, escrow, readBooked } = await open()
    const thief = `0x${'9'.repeat(40)}` as const
    await database()
      .kysely.updateTable('wallet')
      .set({ address: thief })
      .where('account_id', '=', accountId)
      .execute()
    const other = await open()
    for (let round = 0; round < 2; round += 1) await keepEscrows(parts, running)
    expect(await parts.chain.readBalance('USDC', thief)).toBe(0n)
    expect(await readBooked(escrowPlace(parts.chain.name))).toBe(70n)
    expect(await readAlarms(escrow)).toEqual([{ reason: 'home_not_authentic', resolved_at: null }])
    expect(await other.readBooked(parts.chain.name)).toBe(full + 70n)
  })
})
