import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { stablecoins } from '../../src/core/money/money.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import type { Chain } from '../../src/providers/chain/port.ts'

const chainMembers = {
  rpcUrl: z.string().nullable().describe('JSON-RPC address of the chain; null if it is simulated.'),
  chainId: z.int().describe('EIP-155 chain id.'),
  tokens: z.partialRecord(z.enum(stablecoins), z.string()).describe('Token contracts by symbol.'),
  entryPoint: z.string().describe('ERC-4337 EntryPoint.'),
}

export default defineTool({
  name: 'sandbox.credentials',
  title: 'Sandbox credentials',
  summary: 'Read the generated secrets of the sandbox: a demo API key, the chain, and a funded x402 payer.',
  description: 'Everything here is worth nothing and exists in the sandbox only.',
  route: 'GET /sandbox/credentials',
  who: 'public',
  effect: 'read',
  only: 'sandbox',
  // A PEM has lines.
  verbatim: ['bridgeWebhookPrivateKey'],
  input: z.strictObject({}),
  output: z.strictObject({
    demoApiKey: z.string().describe('Developer API key of the demo account.'),
    lithicWebhookSecret: z
      .string()
      .describe('Secret that signs webhooks to POST /api/webhooks/lithic (Standard Webhooks).'),
    bridgeWebhookPrivateKey: z
      .string()
      .describe('Private key that signs webhooks to POST /api/webhooks/bridge: PKCS #8 PEM.'),
    chain: z.strictObject(chainMembers).describe('The default chain.'),
    chains: z
      .array(z.strictObject({ name: z.string().describe('Chain by name.'), ...chainMembers }))
      .describe('Every chain, the default first.'),
    payer: z
      .strictObject({
        address: z.string().describe('EVM address that holds USDC for x402 payments.'),
        privateKey: z.string().describe('Private key of the payer, worthless outside this sandbox.'),
      })
      .describe('An x402 payer with USDC.'),
  }),
  failures: ['not_found'],
  run: async ({ sandbox, chain, chains }) => {
    if (sandbox === null) throw new Failure('not_found', 'There is no sandbox here.')
    return {
      demoApiKey: sandbox.demoApiKey,
      lithicWebhookSecret: sandbox.lithicWebhookSecret,
      bridgeWebhookPrivateKey: sandbox.bridgeWebhookPrivateKey,
      chain: show(chain),
      chains: chains.all.map((one) => ({ name: one.name, ...show(one) })),
      payer: { address: sandbox.payer.address, privateKey: sandbox.payer.privateKey },
    }
  },
})

function show({ rpcUrl, id, tokens, entryPoint }: Chain) {
  return { rpcUrl, chainId: id, tokens: { ...tokens }, entryPoint }
}
