/**
 * Cost of finding a deposit with few and with many wallets: one round of the chain's watcher, from a new block to the
 * posting (PostgreSQL, simulated chain). `npx tsx test/bench/deposits.ts`, about half a minute.
 */
import { pathToFileURL } from 'node:url'
import { sql } from 'kysely'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createSimulatedChain } from '../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { signedCall } from '../../src/rails/wallets/relays/payment-call.ts'
import { createWatchChain } from '../../src/server/jobs/watch-chain.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase } from '../engines.ts'
import { openFundedAccount, sendingDependencies, usdcBalance } from '../rails/wallets/scene.ts'
import { signAuthorization } from '../tools/transfers/signed-payments.ts'

const WALLETS = [100, 100_000]
const WARM_UP = 30
const SAMPLE = 200

/** @property p50 milliseconds. @property ratio its median to the first line's. */
export interface DepositLine {
  readonly wallets: number
  readonly p50: number
  readonly ratio: number
}

export async function benchDeposits(serverUrl: string): Promise<readonly DepositLine[]> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const database = await openPostgres({ url })
  try {
    await database.migrate()
    const chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    const parts = sendingDependencies(database, chain)
    const watch = createWatchChain(parts)
    const { signal } = new AbortController()
    const { accountId, address } = await openFundedAccount(parts)
    const stranger = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: stranger.address, units: 1_000_000n }])
    const deposit = async () => {
      const signed = await signAuthorization(chain, stranger, { to: address, value: 1n })
      const { from: payer, to: destination, value, validAfter, validBefore, ...rest } = signed
      const times = { validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
      const payment = { ...rest, ...times, payer, destination, units: BigInt(value) }
      await chain.signer.writeContract(
        signedCall(chain, { ...payment, kind: 'authorization', token: 'USDC' }),
      )
    }
    const lines: DepositLine[] = []
    for (const wallets of WALLETS) {
      await fillWallets(wallets)
      // Until the watcher has nothing left to adopt or to verify.
      for (let round = 0; round < WARM_UP; round += 1) await watch(signal)
      const { available: before } = await usdcBalance(parts, accountId)
      const times: number[] = []
      for (let count = 0; count < SAMPLE; count += 1) {
        await deposit()
        const start = performance.now()
        await watch(signal)
        times.push(performance.now() - start)
      }
      times.sort((one, other) => one - other)
      const p50 = times[SAMPLE / 2] ?? Number.NaN
      lines.push({ wallets, p50, ratio: p50 / (lines[0]?.p50 ?? p50) })
      const { available: after } = await usdcBalance(parts, accountId)
      if (after - before !== BigInt(SAMPLE))
        throw new Error(`${after - before} of ${SAMPLE} deposits were booked`)
    }
    return lines
  } finally {
    await database.close()
    await drop()
  }

  async function fillWallets(count: number): Promise<void> {
    await sql`insert into account (id, display_name, created_at)
      select 'acct_00' || lpad(i::text, 24, '0'), 'Somebody', now() from generate_series(1, ${count}::int) i
      on conflict do nothing`.execute(database.kysely)
    await sql`insert into wallet (account_id, address, chain, created_at)
      select 'acct_00' || lpad(i::text, 24, '0'), '0x' || lpad(to_hex(i), 40, '0'), 'base-sepolia', now()
      from generate_series(1, ${count}::int) i on conflict do nothing`.execute(database.kysely)
    await sql`analyze`.execute(database.kysely)
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const { wallets, p50, ratio } of await benchDeposits(
    process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  ))
    process.stdout.write(`${wallets} wallets: p50 ${p50.toFixed(2)} ms, ratio ${ratio.toFixed(2)}\n`)
