/** An owner approves terms, not a URL: an approved call pays them or nothing. */
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import { toDecimal } from '../../core/money/money.ts'
import type { Connection } from '../../storage/database.ts'
import { type PayableAsset, payableAssets } from './terms.ts'

const approved = z.looseObject({
  found: z.looseObject({
    payTo: z.string(),
    asset: z.enum(payableAssets),
    units: z.string().regex(/^\d+$/),
    // Decisions of earlier versions lack it.
    chain: z.string().nullish(),
  }),
})

/** @throws Failure `terms_not_payable` when a call that its owner approved would pay another payee, on another chain, or more. */
export async function requireApprovedTerms(
  {
    database,
    chain: home,
    approvedBy,
  }: {
    readonly database: Connection
    readonly chain: { readonly name: string }
    readonly approvedBy?: string
  },
  { chain, payTo, units, asset }: { chain: string; payTo: string; units: bigint; asset: PayableAsset },
): Promise<void> {
  if (approvedBy === undefined) return
  const { facts } = await database.kysely
    .selectFrom('approval')
    .innerJoin('decision', 'decision.id', 'approval.decision_id')
    .select('decision.facts')
    .where('approval.id', '=', approvedBy)
    .executeTakeFirstOrThrow()
  const { found } = approved.parse(facts)
  const approvedChain = found.chain ?? home.name
  const isSamePayee = found.payTo === payTo && approvedChain === chain
  if (isSamePayee && found.asset === asset && units <= BigInt(found.units)) return
  const [then, now] = [
    `${toDecimal({ asset: found.asset, units: BigInt(found.units) })} ${found.asset} to ${found.payTo} on ${approvedChain}`,
    `${toDecimal({ asset, units })} ${asset} to ${payTo} on ${chain}`,
  ]
  throw new Failure(
    'terms_not_payable',
    `The owner approved ${then}; the seller now asks for ${now}. Nothing was paid.`,
    {
      reason: 'terms_changed',
      offers: [],
      isFinal: true,
      hint: 'Tell the owner about the new terms; a new attempt needs a new approval.',
    },
  )
}
