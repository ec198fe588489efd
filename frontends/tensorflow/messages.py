"""The few messages of TensorFlow's file formats that onnxla reads, declared with protobuf.

Each line below is a message and the fields we need, with TensorFlow's numbers and names, so that binary and text forms
both parse. Fields that are not declared are skipped. Sources, below tensorflow/core: framework/{graph,node_def,
attr_value,function,op_def,tensor,tensor_shape}.proto and protobuf/{saved_model,meta_graph,saver,tensor_bundle,
saved_object_graph,trackable_object_graph}.proto. The messages live in a pool of their own: an installed TensorFlow does
not meet them.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "tensorflow"

_FIELDS = {
    "GraphDef": "node:NodeDef*=1 library:FunctionDefLibrary=2 version:int32=3 versions:VersionDef=4",
    "VersionDef": "producer:int32=1",
    "NodeDef": "name:string=1 op:string=2 input:string*=3 device:string=4 attr:{AttrValue}=5",
    "ListValue": "s:bytes*=2 i:int64*=3 f:float*=4 b:bool*=5 type:DataType*=6 shape:TensorShapeProto*=7 "
    "tensor:TensorProto*=8 func:NameAttrList*=9",
    "AttrValue": "list:ListValue|=1 s:bytes|=2 i:int64|=3 f:float|=4 b:bool|=5 type:DataType|=6 "
    "shape:TensorShapeProto|=7 tensor:TensorProto|=8 placeholder:string|=9 func:NameAttrList|=10",
    "NameAttrList": "name:string=1 attr:{AttrValue}=2",
    "FunctionDefLibrary": "function:FunctionDef*=1",
    "FunctionDef": "signature:OpDef=1 node_def:NodeDef*=3 ret:{string}=4 attr:{AttrValue}=5 control_ret:{string}=6",
    "OpDef": "name:string=1 input_arg:ArgDef*=2 output_arg:ArgDef*=3",
    "ArgDef": "name:string=1 type:DataType=3 type_attr:string=4 number_attr:string=5 type_list_attr:string=6",
    "TensorShapeProto": "dim:Dim*=2 unknown_rank:bool=3",
    "Dim": "size:int64=1 name:string=2",
    "TensorProto": "dtype:DataType=1 tensor_shape:TensorShapeProto=2 tensor_content:bytes=4 float_val:float*=5 "
    "double_val:double*=6 int_val:int32*=7 string_val:bytes*=8 scomplex_val:float*=9 int64_val:int64*=10 "
    "bool_val:bool*=11 dcomplex_val:double*=12 half_val:int32*=13 uint32_val:uint32*=16 uint64_val:uint64*=17 "
    "float8_val:bytes=18",
    "SavedModel": "saved_model_schema_version:int64=1 meta_graphs:MetaGraphDef*=2",
    "MetaGraphDef": "meta_info_def:MetaInfoDef=1 graph_def:GraphDef=2 saver_def:SaverDef=3 "
    "signature_def:{SignatureDef}=5 asset_file_def:AssetFileDef*=6 object_graph_def:SavedObjectGraph=7",
    "AssetFileDef": "tensor_info:TensorInfo=1 filename:string=2",
    "MetaInfoDef": "tags:string*=4 tensorflow_version:string=5",
    "SaverDef": "filename_tensor_name:string=1 save_tensor_name:string=2 restore_op_name:string=3",
    "SignatureDef": "inputs:{TensorInfo}=1 outputs:{TensorInfo}=2 method_name:string=3",
    "TensorInfo": "name:string=1 dtype:DataType=2 tensor_shape:TensorShapeProto=3",
    "BundleHeaderProto": "num_shards:int32=1 endianness:int32=2",
    "BundleEntryProto": "dtype:DataType=1 shape:TensorShapeProto=2 shard_id:int32=3 offset:int64=4 size:int64=5 "
    "crc32c:fixed32=6 slices:TensorSliceProto*=7",
    "TensorSliceProto": "",
    "SavedObjectGraph": "nodes:SavedObject*=1 concrete_functions:{SavedConcreteFunction}=2",
    "SavedObject": "children:ObjectReference*=1 variable:SavedVariable=7",
    "SavedVariable": "dtype:DataType=1 shape:TensorShapeProto=2 trainable:bool=3 name:string=6",
    "SavedConcreteFunction": "bound_inputs:int32*=2",
    "ObjectReference": "node_id:int32=1 local_name:string=2",
    "TrackableObjectGraph": "nodes:TrackableObject*=1",
    "TrackableObject": "children:ObjectReference*=1 attributes:SerializedTensor*=2",
    "SerializedTensor": "name:string=1 full_name:string=2 checkpoint_key:string=3",
}
"""`name:type=number`; `*` is repeated, `|` one of the alternatives of the message, `{T}` a map from strings to T."""

DATA_TYPES = (
    "INVALID FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL QINT8 QUINT8 QINT32 BFLOAT16 QINT16 "
    "QUINT16 UINT16 COMPLEX128 HALF RESOURCE VARIANT UINT32 UINT64 FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ "
    "FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ INT4 UINT4 INT2 UINT2 FLOAT4_E2M1FN"
).split()
"""The names of DataType's values 0, 1, ..., without `DT_`. Value 100 + n is a reference to n."""

REFERENCE = 100

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: getattr(_Field, f"TYPE_{name.upper()}")
    for name in ("bool", "bytes", "string", "int32", "int64", "uint32", "uint64", "fixed32", "float", "double")
}


def _declare() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="onnxla/tensorflow_subset.proto", package=_PACKAGE, syntax="proto3")
    enum = file.enum_type.add(name="DataType")
    for number, name in enumerate(DATA_TYPES):
        enum.value.add(name=f"DT_{name}", number=number)
        if number:
            enum.value.add(name=f"DT_{name}_REF", number=number + REFERENCE)
    enum.value.sort(key=lambda value: value.number)
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        if "|" in fields:
            message.oneof_decl.add(name="value")
        for text in fields.split():
            _add_field(message, text)
    return file


def _add_field(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    name, rest = text.split(":")
    kind, number = rest.split("=")
    field = message.field.add(name=name, number=int(number))
    plain = kind.strip("*|{}")
    field.label = _Field.LABEL_REPEATED if kind[0] == "{" or kind.endswith("*") else _Field.LABEL_OPTIONAL
    if kind.endswith("|"):
        field.oneof_index = 0
    if kind.startswith("{"):
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key:string=1")
        _add_field(entry, f"value:{plain}=2")
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry.name}"
    elif plain in _SCALARS:
        field.type = _SCALARS[plain]
    else:
        field.type = _Field.TYPE_ENUM if plain == "DataType" else _Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{plain}"


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_declare())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


# The classes are made at run time, so a type checker knows them as Any.
GraphDef: Any = _message("GraphDef")
NodeDef: Any = _message("NodeDef")
AttrValue: Any = _message("AttrValue")
FunctionDef: Any = _message("FunctionDef")
TensorProto: Any = _message("TensorProto")
TrackableObjectGraph: Any = _message("TrackableObjectGraph")
SavedModel: Any = _message("SavedModel")
BundleHeaderProto: Any = _message("BundleHeaderProto")
BundleEntryProto: Any = _message("BundleEntryProto")
