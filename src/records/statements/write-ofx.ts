/**
 * OFX 2.2: one statement per asset, in the currency that it is or stands for. Shares have no currency and are left out.
 * @see https://financialdataexchange.org/FDX/About/OFX-Work-Group.aspx
 */
import { create } from 'xmlbuilder2'
import { visibleName } from '../../core/base/untrusted-text.ts'
import { otherName, peggedCurrency, signed, splitByAsset, titleOf } from './ledgers.ts'
import type { AccountStatement, Movement } from './read-statement.ts'
import { xmlText } from './xml-text.ts'

/** Longest values that the format allows. */
const MAX = { account: 22, name: 32, memo: 255, id: 255 }

const OK = { CODE: '0', SEVERITY: 'INFO' }

export function writeOfx(statement: AccountStatement): string {
  const { accountId, from, to } = statement
  const statements = splitByAsset(statement).flatMap(({ asset, closing, movements }) => {
    const currency = peggedCurrency(asset)
    if (currency === null) return []
    return [
      {
        TRNUID: '0',
        STATUS: OK,
        STMTRS: {
          CURDEF: currency,
          BANKACCTFROM: {
            BANKID: 'bursar',
            ACCTID: `${asset}-${accountId.slice(-(MAX.account - asset.length - 1))}`,
            ACCTTYPE: 'CHECKING',
          },
          BANKTRANLIST: {
            DTSTART: ofxTime(from),
            DTEND: ofxTime(to),
            ...(movements.length === 0 ? {} : { STMTTRN: movements.map(viewTransaction) }),
          },
          LEDGERBAL: { BALAMT: closing, DTASOF: ofxTime(to) },
        },
      },
    ]
  })
  const body = create({ version: '1.0', encoding: 'UTF-8', standalone: false })
    .ins('OFX', 'OFXHEADER="200" VERSION="220" SECURITY="NONE" OLDFILEUID="NONE" NEWFILEUID="NONE"')
    .ele({
      OFX: {
        SIGNONMSGSRSV1: {
          SONRS: { STATUS: OK, DTSERVER: ofxTime(to), LANGUAGE: 'ENG', FI: { ORG: 'Bursar' } },
        },
        ...(statements.length === 0 ? {} : { BANKMSGSRSV1: { STMTTRNRS: statements } }),
      },
    })
  return body.end({ prettyPrint: true })
}

function viewTransaction(movement: Movement) {
  const { at, id, asset, memo, task, object, refundOf } = movement
  const about = [
    otherName(movement),
    memo,
    task,
    `${object.kind} ${object.id}`,
    refundOf === null ? null : `returns ${refundOf.id}`,
  ]
  return {
    TRNTYPE: movement.direction === 'in' ? 'CREDIT' : 'DEBIT',
    DTPOSTED: ofxTime(at),
    TRNAMT: signed(movement),
    FITID: xmlText(`${id}.${asset}`).slice(0, MAX.id),
    NAME: xmlText(titleOf(movement, MAX.name)),
    MEMO: xmlText(visibleName(about.filter((one) => one !== null).join(' · '), MAX.memo)),
  }
}

/** `20261101000000.000[0:GMT]` */
function ofxTime(iso: string): string {
  return `${iso.replaceAll(/[-:TZ]/g, '')}[0:GMT]`
}
