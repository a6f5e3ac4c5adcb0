import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { onChain } from '../../src/providers/chain/chains.ts'
import { buildEvidence, EVIDENCE_TYPE, evidenceDocument } from '../../src/rails/buying/evidence-document.ts'
import { readOwnPurchase } from '../../src/rails/buying/store.ts'
import { readKeySet } from '../../src/records/decisions/receipt-keys.ts'
import { signDocument } from '../../src/records/decisions/signed-document.ts'
import { keySet } from '../../src/records/decisions/signing-key.ts'

export default defineTool({
  name: 'purchases.evidence',
  title: 'Evidence of a purchase',
  summary: 'Read the signed evidence of a purchase: what was wanted, decided, signed, paid and delivered.',
  description: 'Use it to prove a purchase to its seller or its owner.',
  restDescription:
    '`bursar audit verify-purchase FILE` checks it offline, and with --rpc URL against the chain.',
  route: 'GET /api/purchases/{id}/evidence',
  who: 'account',
  scopes: ['purchases:pay'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  verbatim: ['evidence'],
  input: z.strictObject({ id: z.string().max(64).describe('`buy_…`') }),
  output: z.strictObject({
    evidence: evidenceDocument.describe('The document.'),
    jws: z.string().describe('Compact JWS (Ed25519) over its canonical JSON (RFC 8785).'),
    jwks: keySet.describe('The keys of /.well-known/jwks.json.'),
  }),
  failures: ['not_found', 'provider_unavailable'],
  example: { id: 'buy_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const purchase = await readOwnPurchase(context.database, requireCaller(context), id)
    const evidence = await buildEvidence(onChain(context, purchase.chain), purchase)
    const { dataKey, receiptKey } = context.settings
    const jws = await signDocument(receiptKey, { type: EVIDENCE_TYPE, document: evidence })
    return { evidence, jws, jwks: await readKeySet(context.database, dataKey) }
  },
})
