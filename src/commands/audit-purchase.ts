/** `bursar audit verify-purchase`: checks the evidence of a purchase without trusting the gateway. */
import { readFileSync } from 'node:fs'
import { createPublicClient, http, parseAbi, parseEventLogs } from 'viem'
import { z } from 'zod'
import { toDecimal } from '../core/money/money.ts'
import { escrowCollectorAddress } from '../providers/payment-escrow.ts'
import {
  EVIDENCE_TYPE,
  type EvidenceDocument,
  evidenceDocument,
  judgeEvidence,
} from '../rails/buying/evidence-document.ts'
import { isSignedDocument } from '../records/decisions/signed-document.ts'
import { keySet } from '../records/decisions/signing-key.ts'
import { readKeySet } from './audit-files.ts'

const file = z.object({ evidence: evidenceDocument, jws: z.string(), jwks: keySet.optional() })

const events = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

/** Proxy of x402 that settles `upto` payments, and what it logs directly behind the transfer. */
const UPTO_PROXY = '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'
const uptoEvents = parseAbi(['event Settled()', 'event SettledWithPermit()'])

/** @param rpc URL of a node of the purchase's chain. @returns the exit code: 1 when something contradicts. */
export async function verifyPurchase(
  path: string,
  { jwks, rpc }: { jwks: string | undefined; rpc: string | undefined },
): Promise<number> {
  const { evidence, jws, jwks: own } = readEvidence(path)
  const keys = jwks === undefined ? own : readKeySet(jwks)
  if (keys === undefined)
    throw new Error(`${path}: has no keys. Pass a copy of /.well-known/jwks.json with --jwks FILE.`)
  const faults = [
    ...((await isSignedDocument(jws, { type: EVIDENCE_TYPE, document: evidence, keySet: keys }))
      ? []
      : ['the signature is not one of the keys’ over this document']),
    ...judgeEvidence(evidence),
    ...(rpc === undefined ? [] : await judgeOnChain(evidence, rpc)),
  ]
  const { purchaseId, status, challenge } = evidence
  process.stdout.write(
    faults.length === 0
      ? `${purchaseId}: ${status}, ${evidence.settlement === null ? 'not paid' : `paid ${readPaid(evidence)} ${challenge.asset} to ${challenge.payTo}`}, signature verified${rpc === undefined ? '' : ', payment found on the chain'}\n`
      : `${purchaseId}: not verified\n${faults.map((fault) => `  ${fault}\n`).join('')}`,
  )
  if (jwks === undefined)
    process.stderr.write(
      'Verified with the keys in the file itself. To verify independently, pass a copy of /.well-known/jwks.json with --jwks FILE.\n',
    )
  return faults.length === 0 ? 0 : 1
}

/** What was paid, as a decimal: of `upto`, what the token logged. */
function readPaid({ challenge: { scheme, amount, asset, units }, settlement }: EvidenceDocument): string {
  if (scheme === 'auth-capture') return `at most ${amount}, through an escrow`
  if (scheme !== 'upto') return amount
  const log = settlement?.log
  return log == null
    ? `at most ${amount}`
    : `${toDecimal({ asset, units: BigInt(log.units) })} of ${toDecimal({ asset, units: BigInt(units) })}`
}

function readEvidence(path: string): z.output<typeof file> {
  try {
    return file.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (cause) {
    throw new Error(`${path}: not the evidence of a purchase. GET /api/purchases/{id}/evidence returns it.`, {
      cause,
    })
  }
}

/**
 * Looks for the token's pair of logs, the use of the nonce and the transfer directly behind it; of `upto`, for the transfer and the
 * proxy's log directly behind it.
 */
async function judgeOnChain(
  { challenge, authorization, settlement }: EvidenceDocument,
  rpc: string,
): Promise<readonly string[]> {
  const client = createPublicClient({ transport: http(rpc) })
  const chainId = await client.getChainId()
  if (chainId !== challenge.chainId) return [`the node is of chain ${chainId}, not ${challenge.chainId}`]
  if (settlement === null) return []
  const hash = z.templateLiteral(['0x', z.string()]).parse(settlement.transaction)
  const receipt = await client.getTransactionReceipt({ hash }).catch(() => undefined)
  if (receipt?.status !== 'success') return ['the chain has no such payment']
  const same = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
  if (challenge.scheme === 'upto') {
    const settled = parseEventLogs({
      abi: uptoEvents,
      logs: receipt.logs.filter(({ address }) => same(address, UPTO_PROXY)),
    })
    const isSettled = parseEventLogs({ abi: events, eventName: 'Transfer', logs: receipt.logs }).some(
      ({ address, logIndex, args }) =>
        same(address, challenge.token) &&
        same(args.from, authorization.payer) &&
        same(args.to, challenge.payTo) &&
        args.value <= BigInt(challenge.units) &&
        args.value.toString() === settlement.log?.units &&
        settled.some((one) => one.logIndex === logIndex + 1),
    )
    return isSettled ? [] : ['the transaction does not settle these terms']
  }
  const logs = parseEventLogs({
    abi: events,
    logs: receipt.logs.filter(({ address }) => same(address, challenge.token)),
  })
  const isPaid = logs.some((log, index) => {
    const moved = logs[index + 1]
    return (
      log.eventName === 'AuthorizationUsed' &&
      same(log.args.authorizer, authorization.payer) &&
      same(log.args.nonce, authorization.nonce) &&
      moved?.eventName === 'Transfer' &&
      moved.logIndex === log.logIndex + 1 &&
      same(moved.args.from, authorization.payer) &&
      same(moved.args.to, challenge.scheme === 'auth-capture' ? escrowCollectorAddress : challenge.payTo) &&
      moved.args.value.toString() === challenge.units
    )
  })
  return isPaid ? [] : ['the transaction does not pay these terms']
}
