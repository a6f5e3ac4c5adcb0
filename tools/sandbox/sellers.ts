import { z } from 'zod'
import { defineTool } from '../../src/kernel/tool.ts'
import { sandboxSellers, sellerProtocols, sellerUrl } from '../../src/sandbox/sellers/sellers.ts'

export default defineTool({
  name: 'sandbox.sellers',
  title: 'Sandbox sellers',
  summary:
    'List the sellers of the sandbox, honest and dishonest, that take real payments on the sandbox chain.',
  description:
    'Buy from them with POST /api/purchases, or with any x402 or MPP client. `honest: false` breaks the promise that `about` names.',
  route: 'GET /sandbox/sellers',
  who: 'public',
  effect: 'read',
  only: 'sandbox',
  input: z.strictObject({}),
  output: z.strictObject({
    sellers: z
      .array(
        z.strictObject({
          name: z.string().describe('Name of the seller.'),
          url: z.string().describe('URL of what it sells.'),
          method: z.enum(['GET', 'POST']).describe('Method that the URL expects.'),
          protocol: z.enum(sellerProtocols).describe('How it is paid; `free` if it is not.'),
          price: z.string().describe('Price in the asset, as a decimal string.'),
          asset: z.literal('USDC').describe('Asset of the price.'),
          honest: z.boolean().describe('False if it breaks a promise, to try a buyer with.'),
          about: z.string().describe('Goods of the seller, or its dishonesty.'),
        }),
      )
      .describe('Sellers, the honest ones first.'),
  }),
  failures: [],
  run: async ({ settings }) => ({
    sellers: sandboxSellers.map((seller) => ({
      name: seller.name,
      url: sellerUrl(settings.origin, seller),
      method: seller.method,
      protocol: seller.protocol,
      price: seller.price,
      asset: 'USDC' as const,
      honest: seller.honest,
      about: seller.about,
    })),
  }),
})
