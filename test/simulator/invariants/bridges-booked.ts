import { sql } from 'kysely'
import { findMint, parseBurnBody } from '../../../src/providers/cctp.ts'
import { type Hex, tokenAddress } from '../../../src/providers/chain/port.ts'
import type { Invariant } from './invariant.ts'

interface Bridged {
  readonly id: string
  readonly state: string
  readonly to_chain: string
  readonly units: bigint
  readonly min_received: bigint
  readonly received: bigint | null
  readonly nonce: Hex | null
  readonly mint: Hex | null
  readonly burn: string | null
  readonly booked: bigint
}

export const bridgesBooked: Invariant = {
  sentence:
    'What is burned on one chain arrives on the other once, as it was agreed, and is booked once; what was never burned does not arrive.',
  check: async ({ world }) => {
    const { rows } = await sql<Bridged>`
      select s.id, s.state, s.to_chain, s.units, s.min_received, s.received, s.message_nonce as nonce, s.mint_hash as mint,
        (select t.state from transfer t where t.decision_id = s.decision_id
          and t.funding_id is not distinct from s.funding_id) as burn,
        (select coalesce(sum(case when p.source like '%:held' and p.destination not like 'external:%' then p.units
            when p.destination like '%:held' and p.source like 'acct_%' then -p.units else 0 end), 0)::bigint
          from posting p join ledger_transaction l on l.id = p.transaction_id
          where l.reference = s.id and l.kind in ('bridge', 'bridge_reversal')) as booked
      from swap_order s where s.to_chain is not null order by s.id`.execute(world.database.books.kysely)
    const found: string[] = []
    const mints = new Set<Hex>()
    for (const { id, state, to_chain, units, min_received, received, nonce, mint, burn, booked } of rows) {
      if (state === 'submitted' || state === 'bridging') found.push(`${id}: still ${state}`)
      if (state !== 'confirmed') {
        if (burn === 'confirmed') found.push(`${id}: ${state}, and its burn is confirmed`)
        continue
      }
      if (mint === null || nonce === null || mints.has(nonce)) {
        found.push(`${id}: no mint, or that of another`)
        continue
      }
      mints.add(nonce)
      const network = world.networks.find(({ chain }) => chain.name === to_chain)
      const transaction = await network?.chain.transaction(mint)
      const delivered = transaction?.delivered.find((one) => one.nonce === nonce)
      const burned = delivered && parseBurnBody(delivered.body)
      if (
        network === undefined ||
        transaction === undefined ||
        delivered === undefined ||
        burned === undefined
      ) {
        found.push(`${id}: its mint ${mint} is not on the chain`)
        continue
      }
      const token = tokenAddress(network.chain, 'USDC').toLowerCase() as Hex
      const arrived = findMint(transaction.transfers, delivered, { burn: burned, token })?.units
      if (burned.units !== units || arrived !== received || (received ?? 0n) < min_received)
        found.push(`${id}: burned ${burned.units} of ${units}, minted ${arrived}, booked as ${received}`)
      if (booked !== received) found.push(`${id}: received ${received}, posted ${booked}`)
    }
    return found
  },
}
