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
        swapId: z.string().describe('`swp_…`: the order that moves it; see GET /api/swaps/orders/{id}.'),
        route: z.string().describe('Way between the chains.'),
        from: z.string().describe('Chain that the money leaves.'),
        to: z.string().describe('Chain of the payment.'),
        asset: z.literal('USDC').describe('Asset that moves.'),
        sent: z.string().describe('Amount that leaves, decimal.'),
        minReceived: z
          .string()
          .describe('Least that arrives, decimal. What the payment does not need stays yours.'),
      }),
    )
    .describe('Moves, in their order.'),
  fee: z.string().describe('Most that moving costs, decimal USDC, on top of the payment.'),
  usd: z.string().describe('The same in USD, as it is counted in budgets.'),
  etaSec: z.int().describe('Seconds until the money is there, as expected.'),
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
