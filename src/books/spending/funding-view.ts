/** Money of another chain that moves to a payment first, as its caller and its owner see it. */
import { z } from 'zod'
import type { Connection } from '../../storage/database.ts'

/** Facts of a funding, kept with its decision. Amounts are decimals of USDC. */
export const fundingFacts = z.strictObject({
  fundingId: z.string(),
  swapId: z.string(),
  route: z.string(),
  from: z.string(),
  to: z.string(),
  sent: z.string(),
  minReceived: z.string(),
  fee: z.string(),
  usd: z.string(),
  etaSec: z.number(),
})

export type FundingFacts = z.output<typeof fundingFacts>

export const fundingView = z.strictObject({
  steps: z
    .array(
      z.strictObject({
        swapId: z.string().describe('`swp_…`'),
        route: z.string().describe('Route.'),
        from: z.string().describe('Chain.'),
        to: z.string().describe('Chain.'),
        asset: z.literal('USDC').describe('Asset.'),
        sent: z.string().describe('Sent.'),
        minReceived: z.string().describe('Least that arrives.'),
      }),
    )
    .describe('Moves, in order.'),
  fee: z.string().describe('Most it costs on top, in USDC.'),
  usd: z.string().describe('`fee` in USD.'),
  etaSec: z.int().describe('Seconds.'),
})
fundingView.register(z.globalRegistry, { id: 'Funding' })

export function viewFunding(facts: FundingFacts): z.input<typeof fundingView> {
  const { swapId, route, from, to, sent, minReceived, fee, usd, etaSec } = facts
  return { steps: [{ swapId, route, from, to, asset: 'USDC', sent, minReceived }], fee, usd, etaSec }
}

const withFunding = z.looseObject({ found: z.looseObject({ funding: fundingFacts.nullish() }) })

/** Finds what decisions would move first, by decision; those that move nothing are absent. */
export async function findFundings(
  { kysely }: Connection,
  decisionIds: readonly string[],
): Promise<ReadonlyMap<string, z.input<typeof fundingView>>> {
  if (decisionIds.length === 0) return new Map()
  const rows = await kysely
    .selectFrom('decision')
    .select(['id', 'facts'])
    .where('id', 'in', [...decisionIds])
    .execute()
  return new Map(
    rows.flatMap(({ id, facts }) => {
      const funding = withFunding.safeParse(facts).data?.found.funding
      return funding == null ? [] : [[id, viewFunding(funding)] as const]
    }),
  )
}
