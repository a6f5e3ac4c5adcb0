/** Requests for refunds to the sandbox's sellers: the evidence is verified, and the money goes back to the address that paid, once. */
import { compactVerify, createLocalJWKSet } from 'jose'
import { getAddress, keccak256, stringToHex } from 'viem'
import { z } from 'zod'
import type { Services } from '../../../kernel/context.ts'
import { executePayment, signPayment } from '../../../rails/buying/authorization.ts'
import { type EvidenceDocument, evidenceDocument } from '../../../rails/buying/evidence-document.ts'
import { toHex } from '../../../rails/buying/store.ts'
import { readKeySet } from '../../../records/decisions/receipt-keys.ts'
import type { KeySet } from '../../../records/decisions/signing-key.ts'
import { type SellerName, sellerAccount } from '../../../sandbox/sellers/sellers.ts'
import { voidEscrowed } from './escrow.ts'

const wanted = z.object({ purchase: z.string(), evidence: z.string(), reason: z.string() })
const VALID_SECONDS = 300

const refuse = (status: 400 | 403, error: string) => Response.json({ error }, { status })

export async function takeRefundRequest(
  services: Services,
  name: SellerName,
  body: Uint8Array,
): Promise<Response> {
  const { chain, clock, database, settings } = services
  const read = wanted.safeParse(parse(body))
  if (!read.success) return refuse(400, 'purchase, evidence and reason are needed')
  if (name === 'refuses-refund') return refuse(403, 'no refunds')
  const proved = await readEvidence(await readKeySet(database, settings.dataKey), read.data.evidence)
  const account = sellerAccount(settings.dataKey, name)
  const log = proved?.settlement?.log
  const isEscrowed = proved?.challenge.scheme === 'auth-capture'
  const payee = isEscrowed ? proved.challenge.payTo : log?.to
  const isOwn =
    proved?.purchaseId === read.data.purchase && payee?.toLowerCase() === account.address.toLowerCase()
  if (proved !== null && isOwn && isEscrowed) {
    const given = await voidEscrowed(chain, proved)
    if (given === 'voided') return Response.json({ refund: 'accepted' }, { status: 202 })
    if (given === 'none') return refuse(403, 'nothing is to be given back')
  }
  if (proved === null || log == null || !isOwn)
    return refuse(403, 'the evidence shows no payment to this seller')
  const message = {
    from: account.address,
    to: getAddress(log.from),
    value: BigInt(log.units),
    validAfter: 0n,
    validBefore: BigInt(Math.floor(clock().getTime() / 1000) + VALID_SECONDS),
    // One for each purchase: a second request refunds nothing.
    nonce: keccak256(stringToHex(`sandbox refund ${proved.purchaseId}`)),
  }
  const { asset } = proved.challenge
  const token = toHex(log.token)
  const { status } = await chain.authorizationState({
    token,
    authorizer: account.address,
    nonce: message.nonce,
  })
  if (status === 'unused')
    await executePayment(chain, {
      asset,
      message,
      signature: await signPayment(chain, account, { asset, message }),
    })
  return Response.json({ refund: 'accepted' }, { status: 202 })
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString())
  } catch {
    return null
  }
}

/** The document of a JWS that this gateway has signed; null for any other. */
async function readEvidence(keySet: KeySet, jws: string): Promise<EvidenceDocument | null> {
  try {
    const { payload } = await compactVerify(jws, createLocalJWKSet({ keys: [...keySet.keys] }), {
      algorithms: ['EdDSA'],
    })
    return evidenceDocument.parse(JSON.parse(Buffer.from(payload).toString()))
  } catch {
    return null
  }
}
